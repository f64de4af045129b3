/**
 * Returns the path and query of a request target. The target is an absolute URL if the client treats the server as a
 * proxy (RFC 9112, section 3.2.2). It begins with several slashes if the client's base URL ends with one.
 */
export function pathAndQueryOf(target: string): string {
  const isPath = target.charCodeAt(0) === slash;
  if ((isPath && target.charCodeAt(1) !== slash) || target === "*") return target;
  return target.replace(origin, "").replace(/^\/*/, "/");
}

const slash = 0x2f;
const origin = /^https?:\/\/[^/?]*/i;
