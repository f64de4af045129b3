import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg, release, totalmem, type } from "node:os";
import { join } from "node:path";
import type { Outcome } from "./benchmark.ts";
import type { Cores } from "./processes/cores.ts";
import { resultsDir } from "./project-root.ts";
import { type Figure, ratioOf } from "./reporting.ts";

type Machine = ReturnType<typeof describeMachine>;

/** The figures of a benchmark, with the command and the machine that produced them. */
export type Result = Outcome & {
  benchmark: string;
  measuredAt: string;
  command: string;
  machine: Machine;
};

/** Read once, before the benchmarks add to it. Above zero, other processes were running. */
const loadBefore = Math.round((loadavg()[0] ?? 0) * 100) / 100;

export function describeMachine(cores: Cores | undefined) {
  const all = cpus();
  return {
    cpu: all[0]?.model.trim() ?? "unknown",
    cores: all.length,
    memoryGb: Math.round(totalmem() / 1e9),
    system: `${type()} ${release()}`,
    node: process.version,
    pinning:
      cores === undefined
        ? "nothing pinned"
        : `the measured process on core ${cores.server}, everything else on core ${cores.load}`,
    loadBefore,
  };
}

export function machineLine(machine: Machine): string {
  const { cpu, cores, memoryGb, system, node, pinning, loadBefore: load } = machine;
  return `${cpu}, ${cores} cores, ${memoryGb} GB, ${system}, Node.js ${node}; ${pinning}; load average before: ${load}`;
}

export function saveResult(result: Result): void {
  mkdirSync(resultsDir, { recursive: true });
  const text = `${JSON.stringify(result, null, 2)}\n`;
  writeFileSync(join(resultsDir, `${result.benchmark}.json`), text);
}

export function readResults(): ReadonlyMap<string, Result> {
  if (!existsSync(resultsDir)) return new Map();
  const files = readdirSync(resultsDir).filter((name) => name.endsWith(".json"));
  const read = (name: string) => JSON.parse(readFileSync(join(resultsDir, name), "utf8")) as Result;
  return new Map(files.map(read).map((result) => [result.benchmark, result]));
}

/**
 * Describes the ratios that exceed the saved ones by more than the tolerance. A ratio that has no saved
 * one, or a saved ratio that was not measured, is a problem as well.
 */
export function worseRatios(
  figures: readonly Figure[],
  { saved, tolerance }: { saved: readonly Figure[]; tolerance: number },
): string[] {
  const [ratios, accepted] = [ratiosOf(figures), ratiosOf(saved)];
  const problems = [...accepted.keys()].flatMap((what) =>
    ratios.has(what) ? [] : [`"${what}" was not measured.`],
  );
  for (const [what, ratio] of ratios) {
    const before = accepted.get(what);
    const bound = (before ?? 0) * tolerance;
    if (before === undefined) problems.push(`"${what}" has no accepted ratio.`);
    // A ratio that is not a number exceeds every bound.
    else if (!(ratio <= bound))
      problems.push(
        `"${what}" has a ratio of ${ratio.toFixed(2)}. Accepted: ${before.toFixed(2)}, at most ${bound.toFixed(2)}.`,
      );
  }
  return problems;
}

function ratiosOf(figures: readonly Figure[]): ReadonlyMap<string, number> {
  const compared = figures.filter(({ baseline }) => baseline !== undefined);
  return new Map(compared.map((figure) => [figure.what, ratioOf(figure) ?? Number.NaN]));
}
