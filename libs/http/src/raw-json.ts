import { randomBytes } from "node:crypto";

/**
 * Values as JSON text. `JSON.parse` and `JSON.stringify` lose what a text says: `1.0` becomes `1`, and members with
 * names of integers move to the front.
 */
export class RawJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** Called by `JSON.stringify`, which `stringify` uses. */
  toJSON(): unknown {
    if (texts === undefined) return JSON.parse(this.text);
    texts.push(this.text);
    return `${mark}${texts.length - 1}`;
  }
}

/** The texts of the value that is being serialized. Undefined outside of `stringify`. */
let texts: string[] | undefined;

/** A secret, so that no value can contain it. */
const mark = randomBytes(16).toString("hex");
const marked = new RegExp(`"${mark}(\\d+)"`, "g");

/** Serializes a value like `JSON.stringify`, with the texts of its `RawJson` unchanged. */
export function stringify(value: unknown): string {
  texts = [];
  try {
    const text = JSON.stringify(value);
    const found = texts;
    if (found.length === 0) return text;
    return text.replace(marked, (_, index) => found[Number(index)] ?? "null");
  } finally {
    texts = undefined;
  }
}

const textsOfBodies = new WeakMap<object, string>();

/** Keeps the text of a parsed body, as long as the body. */
export function keepText(body: unknown, text: string): void {
  if (typeof body === "object" && body !== null) textsOfBodies.set(body, text);
}

/** Returns the text of a parsed body, with white space. Undefined for an object that is no body. */
export const textOfBody = (body: object): string | undefined => textsOfBodies.get(body);

/** Returns the text of a member of an object. Undefined if the valid JSON text is no object or has no such member. */
export function memberText(text: string, name: string): string | undefined {
  let at = skipSpace(text, 0);
  if (text[at] !== "{") return undefined;
  for (at = skipSpace(text, at + 1); text[at] === '"'; at = skipSpace(text, at + 1)) {
    const keyEnd = endOfValue(text, at);
    const begin = skipSpace(text, skipSpace(text, keyEnd) + 1);
    const end = endOfValue(text, begin);
    if (JSON.parse(text.slice(at, keyEnd)) === name) return text.slice(begin, end);
    at = skipSpace(text, end);
  }
  return undefined;
}

/** Returns the texts of the elements of an array; none if the valid JSON text is no array. */
export function elementTexts(text: string): string[] {
  const elements: string[] = [];
  let at = skipSpace(text, 0);
  if (text[at] !== "[") return elements;
  for (at = skipSpace(text, at + 1); text[at] !== "]"; ) {
    const end = endOfValue(text, at);
    elements.push(text.slice(at, end));
    at = skipSpace(text, end);
    if (text[at] === ",") at = skipSpace(text, at + 1);
  }
  return elements;
}

/** The tokens of JSON: texts, numbers and words, and single signs. White space is between them. */
const tokens = /"(?:[^"\\]|\\.)*"|[^\s"{}[\],:]+|[{}[\],:]/g;

/** Returns the tokens of a valid JSON text in order. */
export const tokensOf = (text: string): readonly string[] => text.match(tokens) ?? [];

const space = /[^\s]/g;

function skipSpace(text: string, from: number): number {
  space.lastIndex = from;
  return space.exec(text)?.index ?? text.length;
}

/** Returns the end of the value that begins at an offset. */
function endOfValue(text: string, begin: number): number {
  tokens.lastIndex = begin;
  let depth = 0;
  for (let token = tokens.exec(text); token !== null; token = tokens.exec(text)) {
    const [sign] = token;
    if (sign === "{" || sign === "[") depth += 1;
    else if (sign === "}" || sign === "]") depth -= 1;
    if (depth === 0) return tokens.lastIndex;
  }
  return text.length;
}
