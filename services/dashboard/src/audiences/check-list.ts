/** Checks the file of a list before it is uploaded, as the API does. The API names only the first line that it rejects. */

export type ListFormat = "text/csv" | "application/x-ndjson";

/** Returns the format of a file by its name. */
export const formatOf = (fileName: string): ListFormat =>
  /\.(ndjson|jsonl)$/i.test(fileName) ? "application/x-ndjson" : "text/csv";

type RejectedLine = { readonly line: number; readonly problem: string };

export type CheckedList = {
  /** Number of entries that the API accepts, repeated ones included. */
  readonly entries: number;
  readonly rejectedCount: number;
  /** The first rejected lines. */
  readonly rejected: readonly RejectedLine[];
};

/** Limits of the API. */
const maxEntries = 1_000_000;
export const maxFileBytes = 64 * 1024 * 1024;
const maxEntryLength = 512;
const maxRecordLength = 64 * 1024;

/** Rejected lines that are named. The others are counted. */
const maxNamedLines = 20;

type Options = { readonly format: ListFormat; readonly hasHeader: boolean };
type Entry = { entry: string } | { problem: string };

/**
 * Creates a check that takes the text of a file in parts. A record of CSV can have several lines, because a quoted field
 * can contain newlines. `finish` takes the last record, which needs no newline.
 */
export function createListCheck({ format, hasHeader }: Options) {
  const isCsv = format === "text/csv";
  let rest = "";
  let record = "";
  let line = 1;
  let firstLine = 1;
  let skipsNext = hasHeader;
  let entries = 0;
  let rejectedCount = 0;
  const rejected: RejectedLine[] = [];

  function reject(problem: string): void {
    rejectedCount += 1;
    if (rejected.length < maxNamedLines) rejected.push({ line: firstLine, problem });
  }

  function takeRecord(isLast: boolean): void {
    const isTooLong = record.length > maxRecordLength;
    if (isCsv && !isTooLong && !isLast && hasOpenQuote(record)) return;
    const text = record;
    record = "";
    if (skipsNext) skipsNext = false;
    else if (isTooLong) reject(`has more than ${maxRecordLength} characters`);
    else if (text !== "") takeEntry(isCsv ? csvEntry(text) : jsonEntry(text));
  }

  function takeEntry(found: Entry): void {
    const problem = "problem" in found ? found.problem : entryProblem(found.entry);
    if (problem === undefined) entries += 1;
    else reject(problem);
  }

  function takeLine(text: string, isLast: boolean): void {
    const isContinued = record !== "";
    if (!isContinued) firstLine = line;
    const content = text.endsWith("\r") ? text.slice(0, -1) : text;
    record = isContinued ? `${record}\n${content}` : content;
    line += 1;
    // A line without quotes cannot close the open one. Most lines of a file with a missing quote are such.
    const staysOpen = isContinued && !content.includes('"') && record.length <= maxRecordLength;
    if (!staysOpen || isLast) takeRecord(isLast);
  }

  return {
    take(part: string): void {
      const lines = (rest + part).split("\n");
      // A line of any length must not fill the memory: the check needs no more of it.
      rest = (lines.pop() ?? "").slice(0, maxRecordLength + 1);
      for (const each of lines) takeLine(each, false);
    },
    finish(): CheckedList {
      if (rest !== "" || record !== "") takeLine(rest, true);
      return { entries, rejectedCount, rejected };
    },
  };
}

const field = '(?:"(?:[^"]|"")*"|[^",]*)';
const completeRecord = new RegExp(`^${field}(?:,${field})*$`);
const openRecord = new RegExp(`^(?:${field},)*"(?:[^"]|"")*$`);

const hasOpenQuote = (record: string): boolean =>
  record.includes('"') && !completeRecord.test(record) && openRecord.test(record);

/** Returns the first column of a record. */
function csvEntry(record: string): Entry {
  if (!record.includes('"')) return { entry: record.split(",", 1)[0] ?? "" };
  if (!completeRecord.test(record))
    return {
      problem: openRecord.test(record)
        ? "has a quote that is not closed"
        : "has a quote in the wrong place",
    };
  const quoted = /^"(?<text>(?:[^"]|"")*)"/.exec(record)?.groups?.text;
  return { entry: quoted?.replaceAll('""', '"') ?? record.split(",", 1)[0] ?? "" };
}

function jsonEntry(line: string): Entry {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value === "string") return { entry: value };
  } catch {
    // The line is not JSON at all, which has the same message.
  }
  return { problem: "is not a JSON text" };
}

function entryProblem(entry: string): string | undefined {
  if (entry === "") return "has no entry";
  if (entry.length > maxEntryLength && [...entry].length > maxEntryLength)
    return `has an entry of more than ${maxEntryLength} characters`;
  if (entry.includes("\0") || !entry.isWellFormed())
    return "has an entry with NUL or broken Unicode";
  return undefined;
}

/** Returns what prevents the upload of a checked file, or undefined. */
export function fileProblem(size: number, { entries, rejectedCount }: CheckedList) {
  if (size > maxFileBytes) return "The file has more than 64 MiB, the limit of one upload.";
  if (rejectedCount > 0) return "Correct these lines, then choose the file again.";
  if (entries > maxEntries) return "The file has more than 1,000,000 entries, the limit of a list.";
  return entries === 0 ? "The file has no entries." : undefined;
}

/** Checks a file as a stream. Rejects with the reason of the signal if that is aborted. */
export async function checkFile(
  file: Blob,
  options: Options,
  signal: AbortSignal,
): Promise<CheckedList> {
  const check = createListCheck(options);
  const text = file.stream().pipeThrough(new TextDecoderStream(), { signal });
  for await (const part of text as unknown as AsyncIterable<string>) check.take(part);
  return check.finish();
}
