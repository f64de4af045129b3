import { hash, timingSafeEqual } from "node:crypto";

/** The cookie of a session, `<id>.<secret>`. The secret has 32 random bytes in base64url. */
export type SessionCookie = { sessionId: string; secret: string };

const cookie = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\.[A-Za-z0-9_-]{43}$/;
const idLength = 36;

/** Longer headers hold no session. */
const maxHeaderLength = 16_384;

/**
 * Returns the name of the cookie. Over plain HTTP, which `PUBLIC_URL` may have at a loopback address only, browsers
 * refuse the prefix `__Host-`, and all ports of a host share their cookies.
 */
export function sessionCookieName(publicUrl: URL): string {
  return publicUrl.protocol === "https:"
    ? "__Host-halyard-session"
    : `halyard-session-${publicUrl.port || "80"}`;
}

/** Returns the header that stores a session in the browser, or removes it with a `maxAgeSeconds` of 0. */
export function setCookie(
  publicUrl: URL,
  { sessionId, secret }: SessionCookie,
  maxAgeSeconds: number,
): string {
  const secure = publicUrl.protocol === "https:" ? "; Secure" : "";
  return `${sessionCookieName(publicUrl)}=${sessionId}.${secret}; Max-Age=${maxAgeSeconds}; Path=/; HttpOnly; SameSite=Lax${secure}`;
}

/**
 * Returns the session in a `Cookie` header. Two cookies of the name count as none: another application below the same
 * domain may have set one of them.
 */
export function readSessionCookie(
  header: string | undefined,
  name: string,
): SessionCookie | undefined {
  if (header === undefined || header.length > maxHeaderLength) return undefined;
  const prefix = `${name}=`;
  let value: string | undefined;
  for (const part of header.split(";")) {
    const pair = part.trim();
    if (!pair.startsWith(prefix)) continue;
    if (value !== undefined) return undefined;
    value = pair.slice(prefix.length);
  }
  if (value === undefined || !cookie.test(value)) return undefined;
  return { sessionId: value.slice(0, idLength), secret: value.slice(idLength + 1) };
}

export function digestOfSecret(secret: string): string {
  return hash("sha256", secret, "hex");
}

const sha256HexBytes = 64;
/** 32 bytes in base64url. */
const secretTextBytes = 43;
// Every request reuses these buffers, because a new buffer costs as much as the hash.
const givenSha256 = Buffer.alloc(sha256HexBytes);
const storedSha256 = Buffer.alloc(sha256HexBytes);
const givenSecret = Buffer.alloc(secretTextBytes);

/** Compares a secret with its lowercase hexadecimal SHA-256 in constant time. */
export function isSecretOf(secret: string, sha256: string): boolean {
  givenSha256.write(digestOfSecret(secret), "latin1");
  storedSha256.write(sha256, "latin1");
  return timingSafeEqual(givenSha256, storedSha256);
}

/** Returns a function that compares secrets with this one in constant time. Secrets have the length of a cookie's. */
export function comparesWith(secret: string): (given: string) => boolean {
  const proved = Buffer.from(secret, "latin1");
  return (given) => {
    givenSecret.write(given, "latin1");
    return timingSafeEqual(givenSecret, proved);
  };
}
