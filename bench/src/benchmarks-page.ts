import { readFileSync, writeFileSync } from "node:fs";
import { machineLine } from "./machine.ts";
import { benchmarksPage } from "./project-root.ts";
import { describeOutcome } from "./reporting/describe-outcome.ts";
import { type Result, readResults } from "./results.ts";

/**
 * The page about the benchmarks is written by hand, except for the figures: between two marks stands
 * what was saved, so that the page cannot say anything else than what was measured.
 */
const begin = (benchmark: string) => `<!-- measured: ${benchmark} -->`;
const end = "<!-- end of measured -->";

export function updateBenchmarksPage(): void {
  writeFileSync(benchmarksPage, renderedPage());
}

/** The page as it ought to be: with the figures that are saved. */
export function renderedPage(): string {
  let page = readFileSync(benchmarksPage, "utf8");
  for (const [benchmark, result] of readResults()) page = withResult(page, benchmark, result);
  return page;
}

function withResult(page: string, benchmark: string, result: Result): string {
  const start = page.indexOf(begin(benchmark));
  const stop = page.indexOf(end, start);
  if (start < 0 || stop < 0)
    throw new Error(`docs/benchmarks.md has no place for the figures of ${benchmark}`);
  return [
    page.slice(0, start),
    begin(benchmark),
    "\n",
    section(result),
    "\n",
    page.slice(stop),
  ].join("");
}

function section(result: Result): string {
  const moment = result.measuredAt.slice(0, 16).replace("T", " ");
  return [
    `Measured ${moment} UTC with \`${result.command}\` on ${machineLine(result.machine)}.`,
    "",
    describeOutcome(result),
  ].join("\n");
}
