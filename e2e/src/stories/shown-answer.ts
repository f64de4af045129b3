/**
 * Whether an answer is what a page shows. Where a page has `…`, as a value or inside of a text, there
 * may be anything: ids and times are different for every reader.
 */
export function isAsShown(printed: string, shown: string): boolean {
  return fits(parseIfJson(printed), JSON.parse(withQuotes(shown)));
}

/** Returns undefined for a text that is not JSON, such as the empty output of a command. */
function parseIfJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const anything = "…";

/** Pages leave out whole values without quotes, which is easier to read but no JSON. */
function withQuotes(shown: string): string {
  return shown.replaceAll(/: …/g, `: "${anything}"`);
}

function fits(value: unknown, shown: unknown): boolean {
  if (shown === anything) return value !== undefined;
  if (typeof shown === "string") return typeof value === "string" && textFits(value, shown);
  if (typeof shown !== "object" || shown === null) return value === shown;
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value) !== Array.isArray(shown)) return false;
  const names = Object.keys(shown);
  return (
    names.length === Object.keys(value).length &&
    names.every((name) => fits(fieldOf(value, name), fieldOf(shown, name)))
  );
}

const fieldOf = (value: object, name: string) => (value as Record<string, unknown>)[name];

/** A text leaves out at most one part. */
function textFits(text: string, shown: string): boolean {
  const [before = "", after] = shown.split(anything);
  if (after === undefined) return text === shown;
  return text.startsWith(before) && text.endsWith(after);
}
