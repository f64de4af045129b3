const decoder = new TextDecoder("utf-8", { fatal: true });

/** Parses bytes of JSON in UTF-8. Returns undefined for other bytes, which no schema accepts. */
export function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(bytes));
  } catch {
    return undefined;
  }
}
