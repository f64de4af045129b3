/** Longer paths are ignored. No page has one. */
const maxLength = 2_000;

/**
 * Returns the URL of a path of this installation, and of the start page for anything else. The result is absolute,
 * because a path such as `//example.com` would name another host.
 */
export function returnUrl(path: unknown, publicUrl: URL): URL {
  const isPath = typeof path === "string" && path.length <= maxLength && path.startsWith("/");
  const url = isPath ? URL.parse(path, publicUrl.href) : null;
  const isHere = url !== null && url.origin === publicUrl.origin;
  return isHere && !url.pathname.startsWith("/auth/") ? url : new URL("/", publicUrl);
}
