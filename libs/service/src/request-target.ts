/**
 * Returns the path and query of a request target. The target is absolute when the client takes the server for a proxy
 * (RFC 9112, section 3.2.2), and begins with several slashes when the client's base address ends in one.
 */
export function pathAndQueryOf(target: string): string {
  const isPath = target.charCodeAt(0) === slash;
  if ((isPath && target.charCodeAt(1) !== slash) || target === "*") return target;
  return target.replace(origin, "").replace(/^\/*/, "/");
}

const slash = 0x2f;
const origin = /^https?:\/\/[^/?]*/i;
