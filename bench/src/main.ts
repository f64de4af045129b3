import { allBenchmarks } from "./all-benchmarks.ts";
import { type Arguments, readArguments } from "./arguments.ts";
import type { Bench, Benchmark, Outcome } from "./benchmark.ts";
import { updatePages } from "./benchmarks-page.ts";
import { describeMachine, machineLine } from "./machine.ts";
import { installPeers } from "./peers/peers-package.ts";
import { findCores } from "./processes/cores.ts";
import { describeOutcome, describeQuickOutcome } from "./reporting/describe-outcome.ts";
import { readProfiles, readResults, saveProfile, saveResult } from "./results.ts";
import { withBench } from "./with-bench.ts";
import { worseRatios } from "./worse-ratios.ts";

const given = process.argv.slice(2);
const options = readArguments(given);
if (options.help) console.log(help());
else await runAll(chosen(options), options);

async function runAll(benchmarks: readonly Benchmark[], { quick, save, profile }: Arguments) {
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
    const origin = {
      benchmark: benchmark.name,
      measuredAt: new Date().toISOString(),
      command: `npm run bench -- ${profile ? "--profile --save" : "--save"} ${benchmark.name}`,
      machine,
    };
    if (profile) {
      const text = await withBench(settings, (bench) => profileOf(benchmark, bench));
      console.log(text);
      if (save) saveProfile({ ...origin, profile: text });
    } else {
      const outcome = onlyKnown(await withBench(settings, (bench) => benchmark.run(bench)));
      console.log(quick ? describeQuickOutcome(outcome) : describeOutcome(outcome));
      if (save) saveResult({ ...origin, ...outcome });
      else if (!quick) failOnWorseRatios(benchmark, outcome);
    }
    if (save) updatePages();
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

async function profileOf(benchmark: Benchmark, bench: Bench): Promise<string> {
  return (await benchmark.profile?.(bench)) ?? "This benchmark has no profile.";
}

function chosen({ names, profile, save }: Arguments): readonly Benchmark[] {
  const known = new Set(allBenchmarks.flatMap(({ name, group }) => [name, group]));
  const unknown = names.filter((name) => !known.has(name));
  if (unknown.length > 0)
    throw new Error(`Unknown benchmark ${unknown.join(", ")}; --help lists them.`);
  const named = names.length === 0 ? allBenchmarks : allBenchmarks.filter(isNamed);
  if (!profile) return named;
  const profiled = named.filter((benchmark) => benchmark.profile !== undefined);
  // Without names, only profiles that were saved before are replaced.
  if (!save || names.length > 0) return profiled;
  const saved = readProfiles();
  return profiled.filter(({ name }) => saved.has(name));

  function isNamed({ name, group = name }: Benchmark): boolean {
    return names.includes(name) || names.includes(group);
  }
}

function help(): string {
  const width = Math.max(...allBenchmarks.map(({ name }) => name.length));
  const profiled = allBenchmarks
    .filter(({ profile }) => profile !== undefined)
    .map(({ name }) => name)
    .join(", ");
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
    "  --save     saves the figures (with --profile: the profiles) to bench/results and docs/benchmarks.md",
    `  --profile  prints the functions that use the most CPU time (${profiled})`,
    "  --quick    small and short, to test that the benchmarks work",
    "  --help     prints this text",
  ].join("\n");
}
