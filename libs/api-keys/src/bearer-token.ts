import { createHash, timingSafeEqual } from "node:crypto";

/** Returns whether a bearer token is the operator's. */
export type IsOperatorToken = (token: string) => boolean;

/**
 * Recognizes the operator's token by its SHA-256 in hex, so that only management needs the token itself. All digests
 * have the same length, so the comparison takes constant time. Without a digest, no token is recognized.
 */
export function createIsOperatorToken(sha256: string | undefined): IsOperatorToken {
  if (sha256 === undefined) return () => false;
  const expected = Buffer.from(sha256, "hex");
  return (token) => timingSafeEqual(createHash("sha256").update(token).digest(), expected);
}

export function digestOfToken(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

/** Returns the token of an `Authorization: Bearer <token>` header, or undefined for any other header. */
export function bearerToken(header: string | undefined): string | undefined {
  if (header === undefined || header.length > maxHeaderLength) return undefined;
  if (header.slice(0, 7).toLowerCase() !== "bearer ") return undefined;
  return header.slice(7).trim();
}

/** Maximum length of the header: far above the length of any token, and still cheap to read. */
const maxHeaderLength = 1_000;
