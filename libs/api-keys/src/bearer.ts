/** The token of an `Authorization: Bearer <token>` header; undefined when there is none. */
export function bearerToken(header: string | undefined): string | undefined {
  if (header === undefined || header.length > maxHeaderLength) return undefined;
  if (header.slice(0, 7).toLowerCase() !== "bearer ") return undefined;
  return header.slice(7).trim();
}

/** Far above any token of ours, far below what would be costly to look at. */
const maxHeaderLength = 1_000;
