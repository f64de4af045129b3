import { readFileSync, writeFileSync } from "node:fs";
import { machineLine } from "./machine.ts";
import { benchmarksPage } from "./project-root.ts";
import { describeOutcome } from "./reporting/describe-outcome.ts";
import { type Result, readProfiles, readResults, type SavedProfile } from "./results.ts";

/**
 * The page about the benchmarks is written by hand, except for the figures: between two marks stands
 * what was saved, so that the page cannot say anything else than what was measured.
 */
const measured = (benchmark: string) => `<!-- measured: ${benchmark} -->`;
const profiled = (benchmark: string) => `<!-- profile: ${benchmark} -->`;
const end = "<!-- end of measured -->";

export function updateBenchmarksPage(): void {
  writeFileSync(benchmarksPage, renderedPage());
}

/** The page as it ought to be: with the figures that are saved. */
export function renderedPage(): string {
  let page = readFileSync(benchmarksPage, "utf8");
  for (const [benchmark, result] of readResults())
    page = filled(page, measured(benchmark), [origin(result), "", describeOutcome(result)]);
  for (const [benchmark, saved] of readProfiles())
    page = filled(page, profiled(benchmark), [origin(saved), "", saved.profile]);
  return page;
}

/** Not every profile is worth a place on the page. */
export function hasPlaceForProfile(benchmark: string): boolean {
  return readFileSync(benchmarksPage, "utf8").includes(profiled(benchmark));
}

function filled(page: string, begin: string, lines: readonly string[]): string {
  const start = page.indexOf(begin);
  const stop = page.indexOf(end, start);
  if (start < 0 || stop < 0) throw new Error(`docs/benchmarks.md has no place for ${begin}`);
  return [page.slice(0, start), begin, "\n", lines.join("\n"), "\n", page.slice(stop)].join("");
}

function origin({ measuredAt, command, machine }: Result | SavedProfile): string {
  const moment = measuredAt.slice(0, 16).replace("T", " ");
  return `Measured ${moment} UTC with \`${command}\` on ${machineLine(machine)}.`;
}
