import { isWellEncoded } from "./input-checks.ts";

/**
 * Returns the path and query of a request target. The target is an absolute URL if the client treats the server as a
 * proxy (RFC 9112, section 3.2.2). It begins with several slashes if the client's base URL ends with one. A fragment,
 * which HTTP does not allow in a target, is removed.
 */
export function pathAndQueryOf(target: string): string {
  const fragment = target.indexOf("#");
  const sent = fragment === -1 ? target : target.slice(0, fragment);
  const isPath = sent.charCodeAt(0) === slash;
  if ((isPath && sent.charCodeAt(1) !== slash) || sent === "*") return sent;
  return sent.replace(origin, "").replace(/^\/*/, "/");
}

const slash = 0x2f;
const origin = /^https?:\/\/[^/?]*/i;

/**
 * Escapes the percent signs of a path that is not well encoded, which the router would reject before authentication.
 * OFREP answers it like any other unknown flag.
 */
export function escapeMalformedPath(target: string): string {
  if (!target.includes("%")) return target;
  const [path = "", ...query] = target.split("?");
  if (isWellEncoded(path)) return target;
  return [path.replaceAll("%", "%25"), ...query].join("?");
}

/** Maximum length of a logged path. A longer one may be an attack on the log. */
const maxLoggedPathLength = 500;

/** Returns the path of a request target without its query string and fragment, cut to the maximum length. */
export function pathOf(url: string): string {
  const end = url.search(/[?#]/);
  return (end === -1 ? url : url.slice(0, end)).slice(0, maxLoggedPathLength);
}
