import { allBenchmarks } from "./all-benchmarks.ts";
import { type Arguments, readArguments } from "./arguments.ts";
import type { Benchmark, Outcome } from "./benchmark.ts";
import { updatePages } from "./benchmarks-page.ts";
import { describeMachine, machineLine } from "./machine.ts";
import { installPeers } from "./peers/peers-package.ts";
import { findCores } from "./processes/cores.ts";
import { describeOutcome, describeQuickOutcome } from "./reporting/describe-outcome.ts";
import { readResults, saveResult } from "./results.ts";
import { withBench } from "./with-bench.ts";
import { worseRatios } from "./worse-ratios.ts";

const given = process.argv.slice(2);
const options = readArguments(given);
if (options.help) console.log(help());
else await runAll(chosen(options), options);

async function runAll(benchmarks: readonly Benchmark[], { quick, save }: Arguments) {
  const available = findCores();
  if (available === undefined)
    console.log(
      "Nothing is pinned: taskset is missing, or there is only one core. Servers and load affect each other.",
    );
  if (benchmarks.some(({ withPeers }) => withPeers)) await installPeers();
  for (const benchmark of benchmarks) {
    const cores = benchmark.pinned ? available : undefined;
    const machine = describeMachine(cores);
    console.log(`\n${benchmark.name}: ${benchmark.summary}`);
    console.log(`${new Date().toISOString()}, ${machineLine(machine)}\n`);
    const settings = { quick, cores };
    const measuredAt = new Date().toISOString();
    const command = `npm run bench -- --save ${benchmark.name}`;
    const outcome = onlyKnown(await withBench(settings, (bench) => benchmark.run(bench)));
    console.log(quick ? describeQuickOutcome(outcome) : describeOutcome(outcome));
    if (save) {
      saveResult({ benchmark: benchmark.name, measuredAt, command, machine, ...outcome });
      updatePages();
    } else if (!quick) failOnWorseRatios(benchmark, outcome);
  }
}

function failOnWorseRatios({ name, ratioTolerance }: Benchmark, outcome: Outcome): void {
  if (ratioTolerance === undefined) return;
  const saved = readResults().get(name)?.figures ?? [];
  const problems = worseRatios(outcome.figures, { saved, tolerance: ratioTolerance });
  if (problems.length === 0) return;
  process.exitCode = 1;
  for (const problem of problems) console.error(`${name}: ${problem}`);
  console.error(`To accept the ratios of a new run: npm run bench -- --save ${name}`);
}

/** Removes figures that this system does not provide, such as CPU time without /proc. */
function onlyKnown(outcome: Outcome): Outcome {
  return { ...outcome, figures: outcome.figures.filter(({ measured }) => !Number.isNaN(measured)) };
}

function chosen({ names }: Arguments): readonly Benchmark[] {
  const known = new Set(allBenchmarks.flatMap(({ name, group }) => [name, group]));
  const unknown = names.filter((name) => !known.has(name));
  if (unknown.length > 0)
    throw new Error(`Unknown benchmark ${unknown.join(", ")}; --help lists them.`);
  if (names.length === 0) return allBenchmarks;
  return allBenchmarks.filter(
    ({ name, group = name }) => names.includes(name) || names.includes(group),
  );
}

function help(): string {
  const width = Math.max(...allBenchmarks.map(({ name }) => name.length));
  return [
    "npm run bench -- [options] [benchmark…]     without names: all benchmarks",
    "",
    ...allBenchmarks.map(
      ({ name, summary, withPeers }) =>
        `  ${name.padEnd(width)}  ${summary}${withPeers ? " *" : ""}`,
    ),
    "",
    "  * compares with the packages in bench/peers, which are installed on first use (200 MB)",
    "",
    "  growth selects all benchmarks whose names begin with growth-. They fail if a ratio is more than 1.5",
    "  times the saved one.",
    "",
    "  --save     saves the figures to bench/results and docs/benchmarks.md",
    "  --quick    small and short, to test that the benchmarks work",
    "  --help     prints this text",
  ].join("\n");
}
