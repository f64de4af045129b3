import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { allBenchmarks } from "./all-benchmarks.ts";
import type { Benchmark } from "./benchmark.ts";
import { headlineCells, headlines } from "./headlines.ts";
import { benchmarksPage, resultsDir } from "./project-root.ts";
import { describeOutcome } from "./reporting.ts";
import { machineLine, type Result, readResults } from "./results.ts";

/**
 * The pages with figures. docs/benchmarks.md is written by hand, except for the table between two marks. The
 * pages in bench/results are generated as a whole from the saved results.
 */
const begin = "<!-- headlines -->";
const end = "<!-- end of headlines -->";
type Page = { path: string; text: string };

export function updatePages(): void {
  for (const { path, text } of renderedPages()) writeFileSync(path, text);
}

export function renderedPages(): readonly Page[] {
  const results = readResults();
  const measured = allBenchmarks.flatMap((benchmark) => {
    const result = results.get(benchmark.name);
    return result === undefined ? [] : [{ benchmark, result }];
  });
  return [
    { path: benchmarksPage, text: withHeadlines(readFileSync(benchmarksPage, "utf8"), results) },
    { path: join(resultsDir, "README.md"), text: listOf(measured) },
    ...measured.map(({ benchmark, result }) => ({
      path: join(resultsDir, `${benchmark.name}.md`),
      text: resultPage(benchmark, result),
    })),
  ];
}

/** Paths of all pages in bench/results, including those that are no longer generated. */
export function presentPages(): readonly string[] {
  return readdirSync(resultsDir)
    .filter((name) => name.endsWith(".md"))
    .map((name) => join(resultsDir, name));
}

function withHeadlines(page: string, results: ReadonlyMap<string, Result>): string {
  const start = page.indexOf(begin);
  const stop = page.indexOf(end, start);
  if (start < 0 || stop < 0) throw new Error(`docs/benchmarks.md does not contain ${begin}`);
  const heads = ["Question", "Halyard", "Baseline", "Ratio", "Measured on", "Details"];
  const rows = headlines.map((headline) => row(headlineCells(headline, results)));
  const table = [row(heads), "|---|---|---|---|---|---|", ...rows].join("\n");
  return [page.slice(0, start), begin, "\n", table, "\n", page.slice(stop)].join("");
}

type Measured = { benchmark: Benchmark; result: Result };

function listOf(measured: readonly Measured[]): string {
  const rows = measured.map(({ benchmark: { name, summary }, result }) =>
    row([`[${name}](${name}.md)`, summary, dateOf(result)]),
  );
  const introduction =
    "All figures of all benchmarks. [Benchmarks](../../docs/benchmarks.md) has the most important ones, and describes how to read them and how to repeat them. `npm run bench -- --save` writes these pages.";
  const table = [row(["Benchmark", "Measures", "Date"]), "|---|---|---|", ...rows].join("\n");
  return paragraphs("# Benchmark results", introduction, table);
}

function resultPage({ name, summary, method }: Benchmark, result: Result): string {
  const { command, machine, measuredAt } = result;
  const time = measuredAt.slice(11, 16);
  const origin = `Measured ${dateOf(result)} ${time} UTC with \`${command}\` on ${machineLine(machine)}.`;
  const head = [`# \`${name}\``, `Measures ${summary}.`, method];
  return paragraphs(...head, "## Results", origin, describeOutcome(result));
}

const paragraphs = (...texts: string[]) => `${texts.join("\n\n")}\n`;
const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
const dateOf = ({ measuredAt }: Result) => measuredAt.slice(0, 10);
