/**
 * JSON as text. `JSON.parse` and `JSON.stringify` lose what a text says: `1.0` becomes `1`, and members with names of
 * integers move to the front. Values of flags keep their text, so forms read and write texts.
 */

/** A position in a text, and what is wrong there. Lines and columns begin at 1. */
type JsonProblem = { line: number; column: number; text: string };

/** Maximum depth of an object that the API accepts. */
const maxDepth = 20;

/** A text, a number, a word or a sign, after white space. */
const token =
  /[ \t\r\n]*("(?:[^"\\\p{Cc}]|[\u007f-\u009f]|\\["\\/bfnrt]|\\u[\da-fA-F]{4})*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[{}[\],:])/uy;

class Unreadable extends Error {
  readonly offset: number;
  constructor(text: string, offset: number) {
    super(text);
    this.offset = offset;
  }
}

/** Checks a value as the API does. Returns undefined for a valid one. */
export function jsonProblem(text: string): JsonProblem | undefined {
  try {
    checkJson(text);
    return undefined;
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    const lines = text.slice(0, error.offset).split("\n");
    return {
      line: lines.length,
      column: (lines.at(-1)?.length ?? 0) + 1,
      text: error.message,
    };
  }
}

function checkJson(text: string): void {
  let at = 0;
  const peek = (): string | undefined => {
    token.lastIndex = at;
    return token.exec(text)?.[1];
  };
  const offset = () => at + (/^[ \t\r\n]*/.exec(text.slice(at))?.[0].length ?? 0);
  const fail = (problem: string): never => {
    throw new Unreadable(problem, offset());
  };
  const take = (expected: string, ...signs: string[]): string => {
    const found = peek();
    if (found === undefined || !signs.includes(found)) return fail(`expected ${expected}`);
    at = token.lastIndex;
    return found;
  };
  const checkValue = (depth: number): void => {
    const found = peek() ?? fail("expected a value");
    if (depth > maxDepth && "{[".includes(found)) fail(`at most ${maxDepth} levels`);
    if (found === "{") checkMembers(depth);
    else if (found === "[") checkElements(depth);
    else if ("}],:".includes(found)) fail("expected a value");
    else takeScalar(found);
  };
  const takeScalar = (found: string): void => {
    const problem = scalarProblem(found);
    if (problem !== undefined) fail(problem);
    at = token.lastIndex;
  };
  const checkMembers = (depth: number): void => {
    const names = new Set<string>();
    take("{", "{");
    let isLast = peek() === "}";
    if (isLast) take("}", "}");
    while (!isLast) {
      const found = peek() ?? "";
      if (!found.startsWith('"')) fail("expected the name of a member, in double quotes");
      if (names.has(JSON.parse(found))) fail(`the member ${found} occurs twice`);
      names.add(JSON.parse(found));
      takeScalar(found);
      take("a colon", ":");
      checkValue(depth + 1);
      isLast = take("a comma or }", ",", "}") === "}";
    }
  };
  const checkElements = (depth: number): void => {
    take("[", "[");
    let isLast = peek() === "]";
    if (isLast) take("]", "]");
    while (!isLast) {
      checkValue(depth + 1);
      isLast = take("a comma or ]", ",", "]") === "]";
    }
  };
  checkValue(1);
  if (offset() < text.length) fail("expected the end of the value");
}

/** Says why the API rejects a text or a number within a value. */
export function scalarProblem(found: string): string | undefined {
  if (found.startsWith('"')) {
    const value = JSON.parse(found) as string;
    return value.isWellFormed() && !value.includes("\0")
      ? undefined
      : "texts must not contain NUL characters or broken Unicode";
  }
  if (!/^[-\d]/.test(found)) return undefined;
  const value = Number(found);
  if (!Number.isFinite(value)) return "this number is too large";
  return Number.isInteger(value) && !Number.isSafeInteger(value)
    ? "integers are at most 9007199254740991. Use a text for a longer one"
    : undefined;
}

const tokens = /"(?:[^"\\]|\\.)*"|[^\s"{}[\],:]+|[{}[\],:]/g;

const tokensOf = (text: string): readonly string[] => text.match(tokens) ?? [];

/** Returns a valid JSON text without white space. */
export const compactJson = (text: string): string => tokensOf(text).join("");

/** Returns a valid JSON text with a line for each member. */
export function prettyJson(text: string): string {
  let depth = 0;
  let previous = "";
  let pretty = "";
  const newLine = () => `\n${"  ".repeat(depth)}`;
  for (const sign of tokensOf(text)) {
    const isClosing = sign === "}" || sign === "]";
    const isAfterOpening = previous === "{" || previous === "[";
    if (isClosing) depth -= 1;
    if (isClosing ? !isAfterOpening : isAfterOpening || previous === ",") pretty += newLine();
    pretty += sign === ":" ? ": " : sign;
    if (sign === "{" || sign === "[") depth += 1;
    previous = sign;
  }
  return pretty;
}

/** Returns the texts of the elements of a valid JSON array. */
export const elementsOf = (text: string): string[] => partsOf(text).map((part) => part.join(""));

/** Returns the texts of the members of a valid JSON object, by name. */
export const membersOf = (text: string): ReadonlyMap<string, string> =>
  new Map(
    partsOf(text).map(([name = '""', _colon, ...value]) => [JSON.parse(name), value.join("")]),
  );

/** Splits an array or object at its own commas. */
function partsOf(text: string): string[][] {
  const inner = tokensOf(text).slice(1, -1);
  if (inner.length === 0) return [];
  const parts: string[][] = [[]];
  let depth = 0;
  for (const sign of inner) {
    if (sign === "{" || sign === "[") depth += 1;
    if (sign === "}" || sign === "]") depth -= 1;
    if (sign === "," && depth === 0) parts.push([]);
    else parts.at(-1)?.push(sign);
  }
  return parts;
}
