/**
 * The cookie that binds sign-ins to the browser that began them. Without it, an attacker could send a link to a
 * callback that signs in the victim with the attacker's account. All sign-ins of a browser share it, because several
 * tabs may sign in at the same time.
 */
const secretPattern = /^[A-Za-z0-9_-]{43}$/;

const isSecure = ({ protocol }: URL) => protocol === "https:";

function nameOf(publicUrl: URL): string {
  return isSecure(publicUrl) ? "__Host-halyard-oidc" : `halyard-oidc-${publicUrl.port || "80"}`;
}

/** Returns the secret in a `Cookie` header. Two cookies of the name count as none. */
export function readBrowserSecret(header: string | undefined, publicUrl: URL): string | undefined {
  const prefix = `${nameOf(publicUrl)}=`;
  const values = (header ?? "")
    .split(";")
    .map((part) => part.trim())
    .filter((part) => part.startsWith(prefix))
    .map((part) => part.slice(prefix.length));
  const [value = ""] = values;
  return values.length === 1 && secretPattern.test(value) ? value : undefined;
}

/** Returns the header that stores the secret. `Lax` sends it with the provider's redirect, which is a navigation. */
export function setBrowserSecret(publicUrl: URL, secret: string, maxAgeSeconds: number): string {
  const secure = isSecure(publicUrl) ? "; Secure" : "";
  return `${nameOf(publicUrl)}=${secret}; Max-Age=${maxAgeSeconds}; Path=/; HttpOnly; SameSite=Lax${secure}`;
}
