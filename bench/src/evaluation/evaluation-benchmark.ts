import type { Bench, Benchmark, Outcome } from "../benchmark.ts";
import { peerVersion } from "../peers/peers-package.ts";
import type { Figure } from "../reporting/figure.ts";
import { number } from "../reporting/table.ts";
import { alternate } from "../rounds.ts";
import { median } from "../statistics.ts";
import { type FlagKind, flagKinds } from "../targeting/targeted-flags.ts";
import { assertAgreement } from "./agreement.ts";
import {
  type LibraryName,
  libraryNames,
  type MeasuredLibrary,
  peerNames,
  startLibrary,
  type Way,
} from "./measured-library.ts";

export const evaluationBenchmark: Benchmark = {
  name: "evaluation",
  pinned: true,
  withPeers: true,
  summary: "flag evaluation in one process, vs. three JavaScript libraries",
  method:
    "`libs/evaluation` and the evaluators of `unleash-client`, `@openfeature/flagd-core` and `@growthbook/growthbook` evaluate the same 100 flags for the same 2,003 users. " +
    "Each library runs in its own process on the same core, without network, metrics and logging. The baseline is the fastest of the three.\n\n" +
    "Rules have two conditions, and rollouts are 50 %; `mixed` has a third of each kind. " +
    "All libraries receive users as plain objects of an id and four attributes, each with the names that it expects. " +
    "`100 flags per user` evaluates all flags for one user, and `a new user for each flag` one flag. Creating Halyard's context is included; it reads and validates the attributes that a rule needs. " +
    "A constant flag needs no context. The other libraries' contexts are these objects themselves. " +
    "Before measuring, the benchmark verifies that all libraries return the same values.",
  run,
};

const flags = 100;
/** A prime, so that every flag is evaluated for every user. */
const users = 2_003;

type Case = { name: string; flagKinds: readonly FlagKind[] };

const cases: readonly Case[] = [
  { name: "constant", flagKinds: ["constant"] },
  { name: "rules", flagKinds: ["rules"] },
  { name: "rollout", flagKinds: ["rollout"] },
  { name: "mixed", flagKinds },
];

const ways: readonly { way: Way; name: string }[] = [
  { way: "all", name: `${flags} flags per user` },
  { way: "one", name: "a new user for each flag" },
];

/** Minimum ratio to the fastest other library. It is higher where many flags share the work of one context. */
function goalOf(name: string, way: Way): number {
  return way === "all" && (name === "rules" || name === "rollout") ? 8 : 1.5;
}

type PerLibrary<T> = Record<LibraryName, T>;

async function run(bench: Bench): Promise<Outcome> {
  const figures: Figure[] = [];
  const notes: string[] = [];
  for (const each of cases) {
    bench.say(`${each.name}: ${libraryNames.join(", ")} in turn`);
    const libraries = await startAll(bench, each);
    assertAgreement(await perLibrary((name) => libraries[name].values()), each.flagKinds);
    for (const { way, name } of ways) {
      const nanoseconds = await measureSpeed(bench, libraries, way);
      const what = `${each.name}, ${name}`;
      figures.push(speedFigure(what, nanoseconds, goalOf(each.name, way)));
      notes.push(`${what}: nanoseconds per evaluation: ${listed(nanoseconds)}.`);
    }
    await perLibrary((name) => libraries[name].stop());
  }
  bench.say("bytes allocated");
  const allocated = await measureAllocation(bench);
  figures.push(...allocated.figures);
  notes.push(...allocated.notes);
  const versions = peerNames.map((name) => [name, peerVersion(name)]);
  return { figures, notes, servers: Object.fromEntries(versions) };
}

function startAll(bench: Bench, { flagKinds: kinds }: Case, nodeOptions: readonly string[] = []) {
  return perLibrary((library) =>
    startLibrary(bench, { library, flagKinds: kinds, flags, users }, nodeOptions),
  );
}

async function measureSpeed(bench: Bench, libraries: PerLibrary<MeasuredLibrary>, way: Way) {
  const measureMs = bench.quick ? 10 : 400;
  const warmUpMs = bench.quick ? 20 : 1_000;
  for (const name of libraryNames) await libraries[name].speed(way, warmUpMs);
  const rounds = Object.fromEntries(
    libraryNames.map((name) => [name, () => libraries[name].speed(way, measureMs)]),
  ) as PerLibrary<() => Promise<{ nanoseconds: number }>>;
  const medians = await alternate(bench.quick ? 1 : 7, rounds);
  return perLibrary(async (name) => medians[name].nanoseconds);
}

/** A young generation that is large enough to avoid collections while allocations are counted. */
const withoutCollections = [
  "--expose-gc",
  "--min-semi-space-size=512",
  "--max-semi-space-size=512",
];
const allocationSamples = 5;

async function measureAllocation(bench: Bench) {
  const mix = cases.at(-1) as Case;
  const libraries = await startAll(bench, mix, withoutCollections);
  const figures: Figure[] = [];
  const notes: string[] = [];
  for (const { way, name } of ways) {
    const bytes = await perLibrary(async (library) => {
      await libraries[library].speed(way, bench.quick ? 20 : 1_000);
      const samples: number[] = [];
      for (let count = 0; count < allocationSamples; count += 1)
        samples.push(await libraries[library].allocation(way));
      return median(samples);
    });
    const what = `${mix.name}, ${name}: bytes allocated per evaluation`;
    const baseline = Math.min(...peerNames.map((peer) => bytes[peer]));
    const goal = { of: "ratio", below: 1 } as const;
    figures.push({ what, unit: "B", measured: bytes.halyard, baseline, goal });
    notes.push(`${what}: ${listed(bytes)}.`);
  }
  await perLibrary((name) => libraries[name].stop());
  return { figures, notes };
}

/** Compares Halyard with the fastest other library. */
function speedFigure(what: string, nanoseconds: PerLibrary<number>, goal: number): Figure {
  const millions = (each: number) => 1e3 / each;
  const fastest = Math.min(...peerNames.map((name) => nanoseconds[name]));
  return {
    what: `${what}: evaluations per second`,
    unit: "M/s",
    measured: millions(nanoseconds.halyard),
    baseline: millions(fastest),
    goal: { of: "ratio", atLeast: goal },
  };
}

function listed(values: PerLibrary<number>): string {
  return libraryNames.map((name) => `${name} ${number(values[name])}`).join(", ");
}

/** Runs sequentially, because the libraries share a core. */
async function perLibrary<T>(each: (name: LibraryName) => Promise<T>): Promise<PerLibrary<T>> {
  const entries: [LibraryName, T][] = [];
  for (const name of libraryNames) entries.push([name, await each(name)]);
  return Object.fromEntries(entries) as PerLibrary<T>;
}
