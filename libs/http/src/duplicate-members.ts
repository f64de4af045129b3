/**
 * Returns whether an object in a JSON text has two members with the same name. `JSON.parse` keeps only the last one, so
 * the parsed `value` then has fewer members than the text.
 */
export function hasDuplicateMembers(text: string, value: unknown): boolean {
  return countMembers(value) < countColons(text);
}

const quote = 0x22;
const colon = 0x3a;
const backslash = 0x5c;

/** Returns the number of members in a JSON text: each has one colon outside of strings. */
function countColons(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === colon) count++;
    else if (code === quote) at = endOfString(text, at);
  }
  return count;
}

function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (text.charCodeAt(at) !== quote) at += text.charCodeAt(at) === backslash ? 2 : 1;
  return at;
}

/** Uses a list instead of recursion, because a body can be nested deeper than the call stack. */
function countMembers(value: unknown): number {
  let count = 0;
  const open = [value];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next !== "object" || next === null) continue;
    const children: unknown[] = Array.isArray(next) ? next : Object.values(next);
    if (children !== next) count += children.length;
    for (const child of children) if (typeof child === "object") open.push(child);
  }
  return count;
}
