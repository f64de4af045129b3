import { parseArgs } from "node:util";
import { allBenchmarks } from "./all-benchmarks.ts";
import { type Benchmark, type Outcome, runBenchmark } from "./benchmark.ts";
import { updatePages } from "./benchmarks-page.ts";
import { installPeers } from "./peers/peers-package.ts";
import { findCores } from "./processes/cores.ts";
import { describeOutcome } from "./reporting.ts";
import { describeMachine, machineLine, readResults, saveResult, worseRatios } from "./results.ts";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    help: { type: "boolean", short: "h", default: false },
    quick: { type: "boolean", default: false },
    save: { type: "boolean", default: false },
  },
});
if (options.quick && options.save)
  throw new Error(
    "--quick figures mean nothing and are not worth saving; remove --quick or --save",
  );
if (options.help) console.log(help());
else await runAll(chosen(positionals));

async function runAll(benchmarks: readonly Benchmark[]): Promise<void> {
  const { quick, save } = options;
  const available = findCores();
  if (available === undefined)
    console.log(
      "Nothing is pinned: taskset is missing, or there is only one core. Servers and load affect each other.",
    );
  if (benchmarks.some(({ withPeers }) => withPeers)) installPeers();
  for (const benchmark of benchmarks) {
    const { name, summary } = benchmark;
    const cores = benchmark.pinned ? available : undefined;
    const machine = describeMachine(cores);
    const measuredAt = new Date().toISOString();
    console.log(`\n${name}: ${summary}\n${measuredAt}, ${machineLine(machine)}\n`);
    const outcome = await runBenchmark(benchmark, { quick, cores });
    console.log(describeOutcome(outcome, quick));
    if (save) {
      const command = `npm run bench -- --save ${name}`;
      saveResult({ benchmark: name, measuredAt, command, machine, ...outcome });
      updatePages();
    } else if (!quick) failOnWorseRatios(benchmark, outcome);
  }
}

function failOnWorseRatios({ name, ratioTolerance }: Benchmark, { figures }: Outcome): void {
  if (ratioTolerance === undefined) return;
  const saved = readResults().get(name)?.figures ?? [];
  const problems = worseRatios(figures, { saved, tolerance: ratioTolerance });
  if (problems.length === 0) return;
  process.exitCode = 1;
  for (const problem of problems) console.error(`${name}: ${problem}`);
  console.error(`To accept the ratios of a new run: npm run bench -- --save ${name}`);
}

function chosen(names: readonly string[]): readonly Benchmark[] {
  const known = new Set(allBenchmarks.flatMap(({ name, group }) => [name, group]));
  const unknown = names.filter((name) => !known.has(name)).join(", ");
  if (unknown !== "") throw new Error(`Unknown benchmark ${unknown}; --help lists them.`);
  if (names.length === 0) return allBenchmarks;
  return allBenchmarks.filter(
    ({ name, group = name }) => names.includes(name) || names.includes(group),
  );
}

function help(): string {
  const width = Math.max(...allBenchmarks.map(({ name }) => name.length));
  const lines = allBenchmarks.map(
    ({ name, summary, withPeers }) => `  ${name.padEnd(width)}  ${summary}${withPeers ? " *" : ""}`,
  );
  return `npm run bench -- [options] [benchmark…]     without names: all benchmarks

${lines.join("\n")}

  * compares with the packages in bench/peers, which are installed on first use (200 MB). peers and gateway
    also compare with servers in Go and Rust, which Go and Cargo build on first use (several minutes).

  growth selects all benchmarks whose names begin with growth-. They fail if a ratio is more than 1.5
  times the saved one.

  --save     saves the figures to bench/results and docs/benchmarks.md
  --quick    small and short, to test that the benchmarks work
  --help     prints this text`;
}
