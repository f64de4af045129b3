import { hash, timingSafeEqual } from "node:crypto";

/** The cookie of a session, `<id>.<secret>`. The secret has 32 random bytes in base64url. */
export type SessionCookie = { sessionId: string; secret: string };

const cookie =
  /^(?<sessionId>[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12})\.(?<secret>[A-Za-z0-9_-]{43})$/;

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
  const found = header
    .split(";")
    .map((part) => part.trim())
    .filter((part) => part.startsWith(`${name}=`));
  if (found.length !== 1) return undefined;
  const { sessionId, secret } = cookie.exec(found[0]?.slice(name.length + 1) ?? "")?.groups ?? {};
  return sessionId === undefined || secret === undefined ? undefined : { sessionId, secret };
}

export function digestOfSecret(secret: string): string {
  return hash("sha256", secret, "hex");
}

/** Compares a secret with its lowercase hexadecimal SHA-256 in constant time. */
export function isSecretOf(secret: string, sha256: string): boolean {
  return timingSafeEqual(Buffer.from(digestOfSecret(secret)), Buffer.from(sha256));
}
