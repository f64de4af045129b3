/** 132 bits of a SHA-256 in base64url: enough that two things never share a tag. */
const length = 22;

/** What a tag keeps of a SHA-256 in base64url. */
export function shortHash(sha256: string): string {
  return sha256.slice(0, length);
}
