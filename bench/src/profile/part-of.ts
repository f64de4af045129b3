/**
 * Returns the component of a function in a profile: a folder of the project, a part of Node, or native code.
 */
export function partOf(name: string): string {
  const file = name.slice(name.lastIndexOf(" ") + 1);
  const folder = /^(?:libs\/[^/]+|services\/[^/]+\/src(?:\/[^/]+(?=\/))?)/.exec(file)?.[0];
  if (folder !== undefined) return folder;
  if (file.startsWith("node:internal/crypto")) return "node:crypto";
  if (file.startsWith("node:")) return "Node.js modules";
  if (isWriting.test(name)) return "writing to the socket";
  if (file.includes("/")) return file.startsWith("bench/") ? "the bare server" : "other packages";
  return own.includes(name) ? name : "native code of Node and V8";
}

/** Entries of V8 itself. */
const own = ["(garbage collector)", "(program)"];

/** Functions through which Node writes to a socket. */
const isWriting = /^write(?:Latin1String|Utf8String|AsciiString|Buffer|v)$/;
