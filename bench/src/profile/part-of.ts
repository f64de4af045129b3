/**
 * What a function of a profile belongs to, for a summary that is read at a glance: a folder of ours, a
 * part of Node, or the code below it, of which a profile only tells names.
 */
export function partOf(name: string): string {
  const place = name.slice(name.lastIndexOf(" ") + 1);
  const folder = /^(?:libs\/[^/]+|services\/[^/]+\/src(?:\/[^/]+(?=\/))?)/.exec(place)?.[0];
  if (folder !== undefined) return folder;
  if (place.startsWith("node:internal/crypto")) return "node:crypto";
  if (place.startsWith("node:")) return "node:http and what it stands on";
  if (isWriting.test(name)) return "writing to the socket";
  if (place.includes("/")) return place.startsWith("bench/") ? "the bare server" : "other packages";
  return own.includes(name) ? name : "native code of Node and V8";
}

/** What V8 says of itself. */
const own = ["(garbage collector)", "(program)"];

/** By these names libuv is asked to write, which it does at once. */
const isWriting = /^write(?:Latin1String|Utf8String|AsciiString|Buffer|v)$/;
