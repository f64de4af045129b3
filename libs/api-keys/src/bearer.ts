/** Returns the token of an `Authorization: Bearer <token>` header; undefined if there is none. */
export function bearerToken(header: string | undefined): string | undefined {
  if (header === undefined || header.length > maxHeaderLength) return undefined;
  if (header.slice(0, 7).toLowerCase() !== "bearer ") return undefined;
  return header.slice(7).trim();
}

/** Maximum length of the header: far above the length of any token, and still cheap to read. */
const maxHeaderLength = 1_000;
