import { isUtf8 } from "node:buffer";
import { maxEntryLength } from "@halyard/contracts";

/**
 * Parsers of uploaded lists. A parser receives the bytes of a body in parts and returns the entries that are complete. It
 * keeps an incomplete line, of a bounded length. The text of a problem names a line and never contains an entry.
 */
export type EntryParser = {
  /** Parses the next part of the body. The last part is empty, with `isLast`. */
  parse(part: Buffer, isLast: boolean): string[] | LineProblem;
};

type LineProblem = { line: number; problem: string };

/** Maximum length of a line, or of a record of several lines, in bytes. Only its first column is used. */
const maxLineBytes = 64 * 1024;

const tooLong = `must have at most ${maxLineBytes} bytes`;

const newline = 0x0a;
const carriageReturn = 0x0d;
const quote = 0x22;
const comma = 0x2c;
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf]);

type Record = {
  /** The position after the newline of the record. */
  end: number;
  /** The number of lines: more than 1 for a record with newlines between quotes. */
  lines: number;
  /** Range of the bytes of the entry. */
  entry: Range;
  /** Quotes in the entry are doubled. */
  isEscaped: boolean;
};

/** Positions in a buffer. A buffer for each of a million entries would be far more memory to collect. */
type Range = { from: number; to: number };

/** Finds the record at a position. Returns undefined if it is incomplete. */
type FindRecord = (
  data: Buffer,
  from: number,
  isLast: boolean,
) => Record | { problem: string } | undefined;

/** Creates a parser of `text/csv` (RFC 4180). The first column has the entries. Blank lines are skipped. */
export function createCsvParser(options: ParserOptions): EntryParser {
  return createParser(findCsvRecord, readCsvEntry, options);
}

/** Creates a parser of `application/x-ndjson`: a JSON text in each line. Blank lines are skipped. */
export function createNdjsonParser(options: ParserOptions): EntryParser {
  return createParser(findLine, readJsonEntry, options);
}

/** With a header, the first record is skipped. */
type ParserOptions = { hasHeader: boolean };

type ReadEntry = (data: Buffer, record: Record) => string | { problem: string };

function createParser(
  findRecord: FindRecord,
  readEntry: ReadEntry,
  { hasHeader }: ParserOptions,
): EntryParser {
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  /** Until this size, an incomplete record waits for further parts, so that each part does not scan it again. */
  let scannedFrom = 0;
  let line = 1;
  let isFirstPart = true;
  let skipsNext = hasHeader;

  /** Adds the entries of the complete records, and returns the position after them. */
  function parseRecords(data: Buffer, isLast: boolean, entries: string[]): number | LineProblem {
    let from = isFirstPart && data.subarray(0, 3).equals(byteOrderMark) ? 3 : 0;
    isFirstPart = false;
    while (from < data.length) {
      const found = findRecord(data, from, isLast);
      if (found === undefined) break;
      if ("problem" in found) return { line, ...found };
      if (found.end - from > maxLineBytes) return { line, problem: tooLong };
      if (skipsNext) skipsNext = false;
      else if (!isBlank(data, from, found)) {
        const entry = readEntry(data, found);
        const problem = typeof entry === "string" ? findEntryProblem(entry) : entry.problem;
        if (problem !== undefined) return { line, problem };
        entries.push(entry as string);
      }
      line += found.lines;
      from = found.end;
    }
    return from;
  }

  return {
    parse(part, isLast) {
      pending.push(part);
      pendingBytes += part.length;
      // The mark may arrive in parts.
      const needed = isFirstPart ? byteOrderMark.length : scannedFrom;
      if (pendingBytes < needed && !isLast) return [];
      const data = pending.length === 1 ? part : Buffer.concat(pending);
      const entries: string[] = [];
      const end = parseRecords(data, isLast, entries);
      if (typeof end !== "number") return end;
      pendingBytes = data.length - end;
      if (pendingBytes > maxLineBytes) return { line, problem: tooLong };
      pending = pendingBytes === 0 ? [] : [Buffer.from(data.subarray(end))];
      scannedFrom = 2 * pendingBytes;
      return entries;
    },
  };
}

/** Returns whether a line has no bytes. */
function isBlank(data: Buffer, from: number, { end, lines }: Record): boolean {
  if (lines > 1) return false;
  const next = data[from];
  return next === newline || (next === carriageReturn && end - from <= 2);
}

function findLine(data: Buffer, from: number, isLast: boolean): Record | undefined {
  const at = data.indexOf(newline, from);
  if (at === -1 && !isLast) return undefined;
  const end = at === -1 ? data.length : at;
  const before = end > from && data[end - 1] === carriageReturn ? end - 1 : end;
  const entry = { from, to: before };
  return { end: at === -1 ? end : end + 1, lines: 1, entry, isEscaped: false };
}

function findCsvRecord(
  data: Buffer,
  from: number,
  isLast: boolean,
): Record | { problem: string } | undefined {
  const line = findLine(data, from, isLast);
  if (line === undefined) return undefined;
  const { to } = line.entry;
  let end = from;
  while (end < to && data[end] !== comma && data[end] !== quote) end += 1;
  // Nearly all lines have no quotes. A quote in another column can begin a field of several lines.
  const hasQuote = end < to && data.subarray(end, to).includes(quote);
  return hasQuote ? findQuotedRecord(data, from, isLast) : { ...line, entry: { from, to: end } };
}

/** Finds a record with quotes, in which newlines and commas between quotes belong to a field. */
function findQuotedRecord(
  data: Buffer,
  from: number,
  isLast: boolean,
): Record | { problem: string } | undefined {
  let first: Pick<Record, "entry" | "isEscaped"> | undefined;
  let lines = 1;
  for (let at = from; ; at += 1) {
    const field = findField(data, at);
    if (field === undefined)
      return isLast ? { problem: "has a quote that is not closed" } : undefined;
    const ending = fieldEnding(data, field.end);
    if (ending === undefined) return { problem: "has a quote in the wrong place" };
    if (ending === "open" && !isLast) return undefined;
    first ??= { entry: field.content, isEscaped: field.isEscaped };
    lines += field.newlines;
    if (ending !== "comma")
      return { ...first, lines, end: ending === "open" ? data.length : field.end + ending };
    at = field.end;
  }
}

type Field = { content: Range; end: number; isEscaped: boolean; newlines: number };

/** Finds the field at a position. Returns undefined if its closing quote is missing. */
function findField(data: Buffer, from: number): Field | undefined {
  if (data[from] !== quote) {
    let end = from;
    while (end < data.length && !endsField(data[end])) end += 1;
    if (data[end] === newline && end > from && data[end - 1] === carriageReturn) end -= 1;
    return { content: { from, to: end }, end, isEscaped: false, newlines: 0 };
  }
  let isEscaped = false;
  let newlines = 0;
  for (let at = from + 1; at < data.length; at += 1) {
    if (data[at] === newline) newlines += 1;
    if (data[at] !== quote) continue;
    if (data[at + 1] !== quote)
      return { content: { from: from + 1, to: at }, end: at + 1, isEscaped, newlines };
    isEscaped = true;
    at += 1;
  }
  return undefined;
}

const endsField = (byte: number | undefined): boolean =>
  byte === comma || byte === newline || byte === quote;

/**
 * Returns what follows a field: a comma, a newline of this number of bytes, or nothing yet. Anything else is an error.
 */
function fieldEnding(data: Buffer, at: number): "comma" | "open" | 1 | 2 | undefined {
  const next = data[at];
  if (next === undefined) return "open";
  if (next === comma) return "comma";
  if (next === newline) return 1;
  if (next !== carriageReturn) return undefined;
  if (at + 1 === data.length) return "open";
  return data[at + 1] === newline ? 2 : undefined;
}

const replacementCharacter = "\ufffd";
const notUtf8 = { problem: "must be valid UTF-8" };

function decode(data: Buffer, { from, to }: Range): string | { problem: string } {
  const text = data.toString("utf8", from, to);
  // Invalid bytes become replacement characters, which a valid text can contain too.
  return text.includes(replacementCharacter) && !isUtf8(data.subarray(from, to)) ? notUtf8 : text;
}

function readCsvEntry(data: Buffer, { entry, isEscaped }: Record): ReturnType<ReadEntry> {
  const text = decode(data, entry);
  return isEscaped && typeof text === "string" ? text.replaceAll('""', '"') : text;
}

const notText = { problem: "must be a JSON text" };

function readJsonEntry(data: Buffer, { entry }: Record): ReturnType<ReadEntry> {
  const text = decode(data, entry);
  if (typeof text !== "string") return text;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "string" ? value : notText;
  } catch {
    return notText;
  }
}

/** Checks an entry like the schema `ListEntry`, which would take longer for a million. */
function findEntryProblem(entry: string): string | undefined {
  if (entry.length === 0) return "must have an entry of at least 1 character";
  if (
    entry.length > maxEntryLength &&
    [...entry.slice(0, 2 * maxEntryLength + 1)].length > maxEntryLength
  )
    return `must have an entry of at most ${maxEntryLength} characters`;
  if (entry.includes("\0") || !entry.isWellFormed())
    return "must have an entry without NUL or broken Unicode";
  return undefined;
}
