/**
 * Returns the component of a function in a profile: a folder of the project, a part of Node, or native code.
 */
export function partOf(name: string): string {
  const place = name.slice(name.lastIndexOf(" ") + 1);
  const folder = /^(?:libs\/[^/]+|services\/[^/]+\/src(?:\/[^/]+(?=\/))?)/.exec(place)?.[0];
  if (folder !== undefined) return folder;
  if (place.startsWith("node:internal/crypto")) return "node:crypto";
  if (place.startsWith("node:")) return "Node.js modules";
  if (isWriting.test(name)) return "writing to the socket";
  if (place.includes("/")) return place.startsWith("bench/") ? "the bare server" : "other packages";
  return own.includes(name) ? name : "native code of Node and V8";
}

/** Entries of V8 itself. */
const own = ["(garbage collector)", "(program)"];

/** Functions through which Node writes to a socket. */
const isWriting = /^write(?:Latin1String|Utf8String|AsciiString|Buffer|v)$/;
