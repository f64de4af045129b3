const decoder = new TextDecoder("utf-8", { fatal: true });

/** What the bytes say; undefined for what is not JSON in UTF-8, which no schema accepts. */
export function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(bytes));
  } catch {
    return undefined;
  }
}
