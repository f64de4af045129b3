import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";

/**
 * Evaluation gives the same for the same flags and contexts, on every machine and at every moment. What
 * belongs to Node or a browser is kept out by the types that the sources are compiled with (see
 * `impure/what-evaluation-cannot-use.ts`), other packages by the linter. Clock, randomness, and what
 * depends on a machine's language or time zone are part of the language itself, which the types cannot
 * take away, so their names are looked for here.
 */
const impure: readonly RegExp[] = [
  /\bMath\s*(?:\?\.\s*|\.\s*)random\b/,
  /\bMath\s*(?:\?\.\s*)?\[/,
  /=\s*Math\b(?!\s*\.)/,
  /\b(?:Intl|Temporal|performance|globalThis|eval|Function)\b/,
  /\b(?:toLocale\w+|localeCompare)\b/,
];

const anyDate = /\bDate\b/;

/** The one file that may use dates, to check that a day exists: in UTC, and never the present one. */
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
  it.each(files)("has no clock, no randomness and no locale in %s", (file) => {
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
  ])("would notice %s", (code) => {
    expect(complaintsAbout(fileWithDates, code)).not.toEqual([]);
    expect(complaintsAbout("other.ts", `${code}; new Date(0)`)).not.toEqual([]);
  });

  it("lets a date be computed in UTC where that is needed, and nowhere else", () => {
    const code = "const utc = new Date(0); utc.setUTCHours(5); utc.getTime(); Date.parse(text);";
    expect(complaintsAbout(fileWithDates, code)).toEqual([]);
    expect(complaintsAbout("other.ts", code)).not.toEqual([]);
  });
});
