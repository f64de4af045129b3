import { seededRandom } from "@halyard/testing";
import { describe, expect, it } from "@jest/globals";
import {
  createCsvParser,
  createNdjsonParser,
  type EntryParser,
} from "../../src/audiences/entry-lines.ts";

const csv = () => createCsvParser({ hasHeader: false });
const ndjson = () => createNdjsonParser({ hasHeader: false });

/** Parses a body in parts that end at the given positions. */
function parse(parser: EntryParser, body: string | Buffer, ends: readonly number[] = []) {
  const bytes = Buffer.from(body);
  const entries: string[] = [];
  const bounds = [0, ...ends, bytes.length];
  for (const [index, end] of bounds.slice(1).entries()) {
    const parsed = parser.parse(bytes.subarray(bounds[index], end), false);
    if ("line" in parsed) return parsed;
    entries.push(...parsed);
  }
  const last = parser.parse(Buffer.alloc(0), true);
  return "line" in last ? last : [...entries, ...last];
}

describe("a parser of CSV", () => {
  it("does not scan an open quote again for each part", () => {
    const parser = csv();
    const before = process.cpuUsage();
    parser.parse(Buffer.from('"a'), false);
    for (let count = 0; count < 65_000; count += 1) parser.parse(Buffer.from("\n"), false);
    // Scanning each time takes several seconds.
    expect(process.cpuUsage(before).user).toBeLessThan(1_000_000);
    expect(parser.parse(Buffer.from('"\nb\n'), true)).toMatchObject({ line: 1 });
  });

  it.each([
    ["lines", "a\nb\n", ["a", "b"]],
    ["lines that end with CRLF", "a\r\nb\r\n", ["a", "b"]],
    ["a last line without an end", "a\nb", ["a", "b"]],
    ["a body without lines", "", []],
    ["the first column", "a,1,x\nb,2,y\n", ["a", "b"]],
    ["blank lines", "\na\n\r\n\nb\n\n", ["a", "b"]],
    ["spaces as a part of entries", " a \n", [" a "]],
    ["entries in quotes", '"a"\n"b",1\n', ["a", "b"]],
    ["commas and newlines between quotes", '"a,b"\n"c\nd"\n', ["a,b", "c\nd"]],
    ["doubled quotes", '"say ""hi"""\n', ['say "hi"']],
    ["newlines in other columns", 'a,"x\ny"\nb\n', ["a", "b"]],
    ["a byte order mark", "\ufeffa\n", ["a"]],
    ["characters of several bytes", "é\n😀\n\ufffd\n", ["é", "😀", "\ufffd"]],
    ["names of members of objects", "__proto__\nconstructor\n", ["__proto__", "constructor"]],
    ["512 characters", `${"😀".repeat(512)}\n`, ["😀".repeat(512)]],
  ])("reads %s", (_, body, entries) => {
    expect(parse(csv(), body)).toEqual(entries);
  });

  it.each([
    ["an entry without characters", "a\n,x\n", 2],
    ["an entry without characters in quotes", 'a\n""\n', 2],
    ["an entry of 513 characters", `a\nb\n${"c".repeat(513)}\n`, 3],
    ["NUL", "a\0b\n", 1],
    ["invalid UTF-8", Buffer.from([0x61, 0x0a, 0xff, 0x0a]), 2],
    ["a quote within an entry", 'a\nb"c\n', 2],
    ["text after a closing quote", '"a"b\n', 1],
    ["a quote that is not closed", 'a\n"b\nc\n', 2],
    ["a line of more than 64 KiB", `a\nb,${"x".repeat(70_000)}\n`, 2],
    ["a wrong line after an entry of two lines", '"a\nb"\n,\n', 3],
  ])("names the line of %s", (_, body, line) => {
    expect(parse(csv(), body)).toEqual({ line, problem: expect.any(String) });
  });

  it("skips a header", () => {
    expect(parse(createCsvParser({ hasHeader: true }), '"user ""id""",plan\na,b\n')).toEqual(["a"]);
  });
});

describe("a parser of NDJSON", () => {
  it.each([
    ["texts", '"a"\n"b"\n', ["a", "b"]],
    ["escapes", '"\\u00e9\\n\\"\\ud83d\\ude00"\n', ['é\n"😀']],
    ["spaces around a text", ' "a" \r\n', ["a"]],
    ["blank lines", '\n"a"\n\n', ["a"]],
    ["a last line without an end", '"a"', ["a"]],
  ])("reads %s", (_, body, entries) => {
    expect(parse(ndjson(), body)).toEqual(entries);
  });

  it.each([
    ["a number", '"a"\n1\n'],
    ["an object", '"a"\n{"__proto__":1}\n'],
    ["text without quotes", '"a"\nb\n'],
    ["two texts", '"a"\n"b" "c"\n'],
    ["half of a surrogate pair", '"a"\n"\\ud83d"\n'],
    ["NUL", '"a"\n"\\u0000"\n'],
    ["a text without characters", '"a"\n""\n'],
  ])("names the line of %s", (_, body) => {
    expect(parse(ndjson(), body)).toEqual({ line: 2, problem: expect.any(String) });
  });
});

describe("given a body that arrives in any parts", () => {
  const body = '\ufeffé,1\r\n"a ""quoted"" ✓\r\nentry",2\n\n😀\n"x",\r\nlast';
  const random = seededRandom();

  it("reads the same entries", () => {
    const whole = parse(csv(), body);
    expect(whole).toEqual(["é", 'a "quoted" ✓\r\nentry', "😀", "x", "last"]);
    const length = Buffer.byteLength(body);
    for (let round = 0; round < 300; round += 1) {
      const count = Math.floor(random() * 8);
      const ends = Array.from({ length: count }, () => Math.floor(random() * length));
      expect(
        parse(
          csv(),
          body,
          ends.sort((a, b) => a - b),
        ),
      ).toEqual(whole);
    }
  });
});
