import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Outcome } from "./benchmark.ts";
import type { Machine } from "./machine.ts";
import { resultsDir } from "./project-root.ts";

/** The figures of a benchmark, with the command and the machine that produced them. */
export type Result = Outcome & {
  benchmark: string;
  measuredAt: string;
  command: string;
  machine: Machine;
};

export function saveResult(result: Result): void {
  mkdirSync(resultsDir, { recursive: true });
  const text = `${JSON.stringify(result, null, 2)}\n`;
  writeFileSync(join(resultsDir, `${result.benchmark}.json`), text);
}

/** Saved results by benchmark. */
export function readResults(): ReadonlyMap<string, Result> {
  if (!existsSync(resultsDir)) return new Map();
  const files = readdirSync(resultsDir).filter((name) => name.endsWith(".json"));
  const all = files.map(
    (name) => JSON.parse(readFileSync(join(resultsDir, name), "utf8")) as Result,
  );
  return new Map(all.map((result) => [result.benchmark, result]));
}
