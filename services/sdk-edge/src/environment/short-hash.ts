/** Length of a short hash in characters of base64url: 132 bits, so that two inputs practically never share a tag. */
const length = 22;

/** Returns the part of a SHA-256 in base64url that tags contain. */
export function shortHash(sha256: string): string {
  return sha256.slice(0, length);
}
