import { allBenchmarks } from "./all-benchmarks.ts";
import { type Arguments, readArguments } from "./arguments.ts";
import type { Bench, Benchmark, Outcome } from "./benchmark.ts";
import { hasPlaceForProfile, updateBenchmarksPage } from "./benchmarks-page.ts";
import { describeMachine, machineLine } from "./machine.ts";
import { installPeers } from "./peers/peers-package.ts";
import { findCores } from "./processes/cores.ts";
import { describeOutcome, describeQuickOutcome } from "./reporting/describe-outcome.ts";
import { readResults, saveProfile, saveResult } from "./results.ts";
import { withBench } from "./with-bench.ts";
import { worseRatios } from "./worse-ratios.ts";

const given = process.argv.slice(2);
const options = readArguments(given);
if (options.help) console.log(help());
else await runAll(chosen(options), options);

async function runAll(benchmarks: readonly Benchmark[], { quick, save, profile }: Arguments) {
  const available = findCores();
  if (available === undefined)
    console.log("There is no taskset, or only one core: servers and load disturb one another.");
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
    if (save) updateBenchmarksPage();
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

/** Without the figures that this system cannot tell, such as CPU time where there is no /proc. */
function onlyKnown(outcome: Outcome): Outcome {
  return { ...outcome, figures: outcome.figures.filter(({ measured }) => !Number.isNaN(measured)) };
}

async function profileOf(benchmark: Benchmark, bench: Bench): Promise<string> {
  return (await benchmark.profile?.(bench)) ?? "There is no profile of this one.";
}

function chosen({ names, profile, save }: Arguments): readonly Benchmark[] {
  const known = new Set(allBenchmarks.flatMap(({ name, group }) => [name, group]));
  const unknown = names.filter((name) => !known.has(name));
  if (unknown.length > 0)
    throw new Error(`There is no benchmark ${unknown.join(", ")}; --help lists them.`);
  const named = names.length === 0 ? allBenchmarks : allBenchmarks.filter(isNamed);
  if (!profile) return named;
  const profiled = named.filter((benchmark) => benchmark.profile !== undefined);
  return save ? profiled.filter(({ name }) => hasPlaceForProfile(name)) : profiled;

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
    "npm run bench -- [options] [benchmark…]     without names: all of them",
    "",
    ...allBenchmarks.map(
      ({ name, summary, withPeers }) =>
        `  ${name.padEnd(width)}  ${summary}${withPeers ? " *" : ""}`,
    ),
    "",
    "  * compares with what bench/peers names, which `npm ci` installs there on first use (200 MB)",
    "",
    "  growth names all benchmarks whose names begin with growth-; they fail when a ratio is worse than",
    "  the saved one",
    "",
    "  --save     keeps the figures in bench/results and docs/benchmarks.md; with --profile, profiles",
    `  --profile  says in which functions the time goes, where a benchmark can (${profiled})`,
    "  --quick    tiny and short: only shows that the benchmarks work",
    "  --help     this text",
  ].join("\n");
}
