import { describe, expect, it } from "@jest/globals";
import {
  checkFile,
  createListCheck,
  fileProblem,
  formatOf,
  type ListFormat,
  maxFileBytes,
} from "../src/audiences/check-list.ts";

const check = (text: string, format: ListFormat = "text/csv", hasHeader = false) => {
  const checked = createListCheck({ format, hasHeader });
  checked.take(text);
  return checked.finish();
};
const lines = (text: string, format?: ListFormat) =>
  check(text, format).rejected.map(({ line, problem }) => `${line} ${problem}`);

describe("the check of a CSV file", () => {
  it.each([
    ["lines", "a\nb\n", 2],
    ["a last line without a newline", "a\nb", 2],
    ["lines of Windows", "a\r\nb\r\n", 2],
    ["blank lines", "a\n\n\r\nb\n", 2],
    ["further columns", 'a,1,"x, y"\nb,2,z\n', 2],
    ["a quoted entry with a comma, a quote and a newline", '"a, ""b""\nc",1\nd\n', 2],
  ])("accepts %s", (_, text, entries) => {
    expect(check(text)).toEqual({ entries, rejectedCount: 0, rejected: [] });
  });

  it("skips a header", () => {
    expect(check("id\na\n", "text/csv", true).entries).toBe(1);
  });

  it.each([
    ["an empty first column", "a\n,x\n", "2 has no entry"],
    ["a quote within a field", 'a\nb"c\nd\n', "2 has a quote in the wrong place"],
    ["a quote that stays open", 'a\n"b\nc', "2 has a quote that is not closed"],
    ["a long entry", `a\n${"x".repeat(513)}\n`, "2 has an entry of more than 512 characters"],
    ["a NUL", "a\nb\0\n", "2 has an entry with NUL or broken Unicode"],
  ])("rejects %s, with its line", (_, text, rejected) => {
    expect(lines(text)).toEqual([rejected]);
  });

  it("counts lines within quoted fields", () => {
    expect(lines('"a\nb"\n,x\n')).toEqual(["3 has no entry"]);
  });

  it("accepts 512 characters outside of the basic plane", () => {
    expect(check(`${"😀".repeat(512)}\n`).entries).toBe(1);
  });

  it("finds the same in parts of any size", () => {
    const text = 'a\r\n"b\n""c",1\n,x\n\nd';
    const whole = check(text);
    for (let size = 1; size < text.length; size += 1) {
      const parts = createListCheck({ format: "text/csv", hasHeader: false });
      for (let at = 0; at < text.length; at += size) parts.take(text.slice(at, at + size));
      expect(parts.finish()).toEqual(whole);
    }
  });

  it("names 20 lines and counts the others", () => {
    const { rejected, rejectedCount } = check(",x\n".repeat(30));
    expect([rejected.length, rejectedCount]).toEqual([20, 30]);
  });
});

describe("the check of an NDJSON file", () => {
  it("accepts JSON texts and rejects everything else", () => {
    expect(lines('"a"\n1\n{"id":"b"}\nc\n"\\ud800"\n', "application/x-ndjson")).toEqual([
      "2 is not a JSON text",
      "3 is not a JSON text",
      "4 is not a JSON text",
      "5 has an entry with NUL or broken Unicode",
    ]);
  });
});

describe("a file", () => {
  const found = { entries: 1, rejectedCount: 0, rejected: [] };

  it("has a format by its name", () => {
    expect(["a.csv", "a.txt", "a.NDJSON", "a.jsonl"].map(formatOf)).toEqual([
      "text/csv",
      "text/csv",
      "application/x-ndjson",
      "application/x-ndjson",
    ]);
  });

  it("is read as a stream, without its byte order mark", async () => {
    const options = { format: "text/csv" as const, hasHeader: false };
    const file = new Blob(["\ufeff,x\n", "a\n"]);
    const checked = await checkFile(file, options, new AbortController().signal);
    expect(checked).toEqual({
      entries: 1,
      rejectedCount: 1,
      rejected: [{ line: 1, problem: "has no entry" }],
    });
  });

  it.each([
    ["64 MiB", maxFileBytes + 1, found],
    ["Correct these lines", 1, { ...found, rejectedCount: 1 }],
    ["1,000,000 entries", 1, { ...found, entries: 1_000_001 }],
    ["no entries", 1, { ...found, entries: 0 }],
  ])("is not uploaded because of: %s", (text, size, checked) => {
    expect(fileProblem(size, checked)).toContain(text);
  });

  it("is uploaded otherwise", () => {
    expect(fileProblem(maxFileBytes, found)).toBeUndefined();
  });
});
