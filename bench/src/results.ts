import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Outcome } from "./benchmark.ts";
import type { Machine } from "./machine.ts";
import { resultsDir } from "./project-root.ts";

/** A benchmark's figures as they were measured, with all that it takes to measure them again. */
export type Result = Outcome & {
  benchmark: string;
  measuredAt: string;
  command: string;
  machine: Machine;
};

export function saveResult(result: Omit<Result, "measuredAt"> & { measuredAt: Date }): void {
  mkdirSync(resultsDir, { recursive: true });
  const file = join(resultsDir, `${result.benchmark}.json`);
  writeFileSync(file, `${JSON.stringify(result, null, 2)}\n`);
}

/** All that were saved, by name. */
export function readResults(): ReadonlyMap<string, Result> {
  if (!existsSync(resultsDir)) return new Map();
  const files = readdirSync(resultsDir).filter((name) => name.endsWith(".json"));
  const results = files.map(
    (name) => JSON.parse(readFileSync(join(resultsDir, name), "utf8")) as Result,
  );
  return new Map(results.map((result) => [result.benchmark, result]));
}
