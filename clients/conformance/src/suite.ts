import { existsSync, readFileSync } from "node:fs";
import { type CaseFile, type Check, checksOf } from "./checks.ts";
import { parseExact, stringifyExact } from "./exact-numbers.ts";

/** The conformance cases of one version of the suite. */
export type Suite = { readonly version: string; readonly files: readonly SuiteFile[] };

export type SuiteFile = {
  /** The path in the suite, such as `cases/equals.json`. */
  readonly path: string;
  readonly title: string;
  /** The condition under which an SDK can skip the file. Other files cannot be skipped. */
  readonly optional?: string;
  readonly cases: readonly ConformanceCase[];
};

export type ConformanceCase = {
  /** A sentence, unique in its file. */
  readonly name: string;
  readonly checks: readonly Check[];
};

type Manifest = { version: string; files: { file: string; cases: number }[] };

/** The build copies the suite beside this module. In Halyard's repository the suite is a folder of the root. */
const packagedFolder = new URL("suite/", import.meta.url);
const folder = existsSync(packagedFolder)
  ? packagedFolder
  : new URL("../../../conformance/", import.meta.url);

/**
 * Reads all cases.
 *
 * @throws if a file is missing or has another number of cases than `suite.json` states.
 */
export function readSuite(): Suite {
  const { version, files } = JSON.parse(read("suite.json")) as Manifest;
  return { version, files: files.map(({ file, cases }) => readSuiteFile(file, cases)) };
}

function readSuiteFile(path: string, expectedCases: number): SuiteFile {
  const text = read(path);
  const content = JSON.parse(text) as CaseFile;
  const exact = checksOf(parseExact(text) as CaseFile);
  const cases = checksOf(content).map(({ name, checks }, index) => ({
    name,
    checks: checks.map((check, position) => ({
      ...check,
      requestJson: stringifyExact(exact[index]?.checks[position]?.request),
    })),
  }));
  if (cases.length !== expectedCases)
    throw new Error(`${path} has ${cases.length} cases; suite.json states ${expectedCases}.`);
  const { title, optional } = content;
  return { path, title, ...(optional === undefined ? {} : { optional }), cases };
}

function read(path: string): string {
  return readFileSync(new URL(path, folder), "utf8");
}
