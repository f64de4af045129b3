import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";

/**
 * Evaluation is deterministic: the same flags and contexts give the same outcomes on every machine and at any time. The
 * types exclude the APIs of Node and browsers (see `impure/what-evaluation-cannot-use.ts`), and the linter excludes
 * other packages. Clocks, randomness, locales and time zones are part of the language, and types cannot exclude them.
 * This test searches the sources for their names.
 */
const impure: readonly RegExp[] = [
  /\bMath\s*(?:\?\.\s*|\.\s*)random\b/,
  /\bMath\s*(?:\?\.\s*)?\[/,
  /=\s*Math\b(?!\s*\.)/,
  /\b(?:Intl|Temporal|performance|globalThis|eval|Function)\b/,
  /\b(?:toLocale\w+|localeCompare)\b/,
];

const anyDate = /\bDate\b/;

/** The only file that may use dates: it checks that a day exists, in UTC, and never reads the clock. */
const fileWithDates = "instant.ts";
const impureDates: readonly RegExp[] = [
  /\bDate\s*(?:\?\.\s*|\.\s*)(?!parse\b|UTC\b)/,
  /\bDate\s*(?:\?\.\s*)?\[/,
  /\bDate\b(?!\s*[.([])/,
  /\bnew\s+Date\s*\(\s*\)/,
  /(?<!\bnew\s+)\bDate\s*\(/,
  /\.\s*(?:get|set)(?!UTC|Time\b)[A-Z]\w*\s*\(/,
  /\.\s*(?:getTimezoneOffset|toDateString|toTimeString)\b/,
];

function complaintsAbout(file: string, source: string): string[] {
  const code = source.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "");
  const forbidden = [...impure, ...(file === fileWithDates ? impureDates : [anyDate])];
  return forbidden.flatMap((name) => name.exec(code)?.[0] ?? []);
}

const folder = new URL("../src/", import.meta.url);
const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
  name.endsWith(".ts"),
);

describe("given the sources of evaluation", () => {
  it.each(files)("finds no clock, randomness or locale in %s", (file) => {
    expect(complaintsAbout(file, readFileSync(new URL(file, folder), "utf8"))).toEqual([]);
  });

  it.each([
    "Date.now()",
    "new Date()",
    "new Date( )",
    "Date()",
    "const { now } = Date;",
    'Date["now"]()',
    "new Date(0).getHours()",
    "date.setFullYear(2027)",
    "date.getTimezoneOffset()",
    "Math.random()",
    "const { random } = Math;",
    'Math["random"]()',
    "new Intl.Collator()",
    "a.localeCompare(b)",
    "number.toLocaleString()",
    "performance.now()",
  ])("would detect %s", (code) => {
    expect(complaintsAbout(fileWithDates, code)).not.toEqual([]);
    expect(complaintsAbout("other.ts", `${code}; new Date(0)`)).not.toEqual([]);
  });

  it("allows computing a date in UTC in one file only", () => {
    const code = "const utc = new Date(0); utc.setUTCHours(5); utc.getTime(); Date.parse(text);";
    expect(complaintsAbout(fileWithDates, code)).toEqual([]);
    expect(complaintsAbout("other.ts", code)).not.toEqual([]);
  });
});
