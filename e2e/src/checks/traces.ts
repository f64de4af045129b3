import { randomInt } from "node:crypto";

/**
 * Finds texts in all data of a system, in any encoding: unchanged, in another case, in base64 of any alignment,
 * percent-encoded, as JSON escapes, in hexadecimal, or in UTF-16.
 */
type Needles = ReadonlyMap<string, string>;

type Trace = { where: string; form: string; excerpt: string };

/** Something to search, such as a file or a log. */
export type Source = { name: string; content: Buffer | string };

const shownAround = 60;

/** Base64 encodes three bytes as four characters, so the encoding of a text depends on its offset in three ways. */
const alignments = [0, 1, 2] as const;

/** Minimum length of a text. Shorter texts would be found by chance. */
const minTextLength = 8;

/** Returns the strings to search for, in lower case, each with a description of its form. */
export function needlesFor(texts: readonly string[]): Needles {
  const needles = new Map<string, string>();
  for (const text of texts) {
    if (text.length < minTextLength) throw new Error("the text to find is too short");
    for (const cased of new Set([text, text.toLowerCase(), text.toUpperCase()]))
      for (const [form, written] of writings(cased)) {
        const needle = written.toLowerCase();
        if (!needles.has(needle)) needles.set(needle, `${form} of ${text}`);
      }
  }
  return needles;
}

function* writings(text: string): Generator<[form: string, written: string]> {
  const bytes = Buffer.from(text);
  const all = (write: (byte: number) => string) => [...bytes].map(write).join("");
  const hexOf = (byte: number) => byte.toString(16).padStart(2, "0");
  yield ["the text", bytes.toString("latin1")];
  for (const alignment of alignments) {
    yield ["base64", insideBase64(bytes, alignment)];
    yield ["base64url", insideBase64(bytes, alignment).replaceAll("+", "-").replaceAll("/", "_")];
  }
  yield ["hexadecimal", all(hexOf)];
  yield ["percent-encoding", all((byte) => `%${hexOf(byte)}`)];
  yield ["JSON escapes", all((byte) => `\\u00${hexOf(byte)}`)];
  yield ["UTF-16", Buffer.from(text, "utf16le").toString("latin1")];
}

/** Returns the part of a text's base64 that does not depend on the surrounding bytes. */
function insideBase64(bytes: Buffer, alignment: number): string {
  const shifted = Buffer.concat([Buffer.alloc(alignment), bytes]);
  const from = Math.ceil((alignment * 8) / 6);
  const to = Math.floor((shifted.length * 8) / 6);
  return shifted.toString("base64").slice(from, to);
}

/** Returns at most one trace of each needle in each source. */
export function findTraces(sources: Iterable<Source>, needles: Needles): Trace[] {
  const traces: Trace[] = [];
  for (const { name, content } of sources) {
    // Each byte becomes one character, so that invalid UTF-8 is searched as well.
    const bytes = typeof content === "string" ? Buffer.from(content) : content;
    const haystack = bytes.toString("latin1").toLowerCase();
    for (const [needle, form] of needles) {
      const at = haystack.indexOf(needle);
      if (at === -1) continue;
      const excerpt = haystack.slice(Math.max(0, at - shownAround), at + shownAround);
      traces.push({ where: name, form, excerpt });
    }
  }
  return traces;
}

/**
 * Unique texts that mark the data of a test. All marks of a set begin and end with the same random halves, with a
 * number in between. One search therefore finds all of them, complete or cut in two. A random number marks values that
 * are not texts.
 */
export type Marks = {
  /** Returns a new mark. It begins with a letter; all other characters are `a-zA-Z0-9`. */
  next(): string;
  /** A number of 15 digits, which a double represents exactly. It is always the same. */
  digits: number;
  /** Finds the marks and the given texts, in any encoding. */
  traces(sources: Iterable<Source>, furtherTexts?: readonly string[]): Trace[];
};

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const letters = 52;
const halfLength = 12;
const numberLength = 3;

export function createMarks(): Marks {
  const head = randomHalf();
  const tail = randomHalf();
  const digits = randomInt(7e13, 8e13) * 10 + 7;
  let count = 0;
  return {
    digits,
    next() {
      count += 1;
      return `${head}${count.toString(36).padStart(numberLength, "0")}${tail}`;
    },
    traces: (sources, furtherTexts = []) =>
      findTraces(sources, needlesFor([head, tail, String(digits), ...furtherTexts])),
  };
}

function randomHalf(): string {
  return Array.from({ length: halfLength }, (_, at) =>
    alphabet.charAt(randomInt(at === 0 ? letters : alphabet.length)),
  ).join("");
}
