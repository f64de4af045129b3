import { randomInt } from "node:crypto";

/**
 * Finds texts in whatever a system leaves behind, however they were written: as they are, in other
 * case, as base64 of any alignment, percent-encoded, escaped for JSON, in hexadecimal, as UTF-16.
 */
export type Needles = ReadonlyMap<string, string>;

export type Trace = { where: string; form: string; excerpt: string };

/** Something that is searched, such as a file or a log. */
export type Source = { name: string; content: Buffer | string };

const shownAround = 60;

/** Base64 writes three bytes as four characters, so a text has three faces in it. */
const alignments = [0, 1, 2] as const;

/** Texts of fewer characters would be found by chance. */
const minTextLength = 8;

/** What to look for, in lower case, each with the words for its form. */
export function needlesFor(texts: readonly string[]): Needles {
  const needles = new Map<string, string>();
  for (const text of texts) {
    if (text.length < minTextLength) throw new Error("a text to be found must not be that short");
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

/** The characters of the base64 of these bytes that do not depend on what stands around them. */
function insideBase64(bytes: Buffer, alignment: number): string {
  const shifted = Buffer.concat([Buffer.alloc(alignment), bytes]);
  const from = Math.ceil((alignment * 8) / 6);
  const to = Math.floor((shifted.length * 8) / 6);
  return shifted.toString("base64").slice(from, to);
}

/** At most one trace of each needle in each place. */
export function findTraces(sources: Iterable<Source>, needles: Needles): Trace[] {
  const traces: Trace[] = [];
  for (const { name, content } of sources) {
    // Bytes become characters one by one, so that what is no UTF-8 is searched like all else.
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
 * Texts that stand nowhere unless we put them there. All marks of one set begin and end with the same
 * random halves, around a number of their own, so that one search finds all of them, whole or cut in
 * two. A number that is random itself marks values that are no text.
 */
export type Marks = {
  /** A new mark, beginning with a letter; every other character is one of `a-zA-Z0-9`. */
  next(): string;
  /** The same number again and again: 15 digits, which a double holds exactly. */
  digits: number;
  /** Finds the marks and any further texts, however they were written. */
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
