import type { Bench, Benchmark } from "../benchmark.ts";
import { peerNames, peerVersion } from "../peers/peers-package.ts";
import { type Child, startChild } from "../processes/child-process.ts";
import { type Goal, number, ratioAtLeast, ratioBelow } from "../reporting.ts";
import { alternate } from "../statistics.ts";
import { type FlagKind, flagKinds } from "../targeting/targeted-flags.ts";
import { assertAgreement, libraryNames } from "./agreement.ts";
import type { LibraryName } from "./libraries.ts";
import type { LibraryApi, Way } from "./library-process.ts";
import { measureReferences } from "./measure-references.ts";

export const evaluationBenchmark: Benchmark = {
  name: "evaluation",
  pinned: true,
  withPeers: true,
  summary: "flag evaluation in one process, vs. three JavaScript libraries",
  method:
    "`libs/evaluation` and the evaluators of `unleash-client`, `@openfeature/flagd-core` and `@growthbook/growthbook` evaluate the same 100 flags for the same 2,003 users. Each library runs in its own process on the same core, without network, metrics and logging. The baseline is the fastest of the three.\n\n" +
    "Rules have two conditions, and rollouts are 50 %; `mixed` has a third of each kind. All libraries receive users as plain objects of an id and four attributes, each with the names that it expects. `100 flags per user` evaluates all flags for one user, and `a new user for each flag` one flag. Creating Halyard's context is included; it reads and validates the attributes that a rule needs. A constant flag needs no context. The other libraries' contexts are these objects themselves. Before measuring, the benchmark verifies that all libraries return the same values.\n\n" +
    "The last rows have no peer: the membership of a random id in the list of an audience, half of them entries, against a list of 1,000; and what a requirement or an audience adds to each flag with rules.",
  run,
};

const flags = 100;
/** A prime, so that every flag is evaluated for every user. */
const users = 2_003;

const cases: readonly (readonly [string, readonly FlagKind[]])[] = [
  ...flagKinds.map((kind) => [kind, [kind]] as const),
  ["mixed", flagKinds],
];

const ways: readonly (readonly [Way, string])[] = [
  ["all", `${flags} flags per user`],
  ["one", "a new user for each flag"],
];

/** Minimum ratio to the fastest other library. It is higher where many flags share the work of one context. */
function goalOf(name: string, way: Way): Goal {
  return ratioAtLeast(way === "all" && (name === "rules" || name === "rollout") ? 8 : 1.5);
}

type PerLibrary<T> = Record<LibraryName, T>;
type Library = Child<LibraryApi>;

async function run(bench: Bench): Promise<void> {
  for (const name of peerNames) bench.version(name, peerVersion(name));
  for (const [name, kinds] of cases) {
    const libraries = await startAll(bench, kinds);
    assertAgreement(await perLibrary((library) => libraries[library].call.values()), kinds);
    for (const [way, wayName] of ways) {
      const nanoseconds = await measureSpeed(bench, libraries, way);
      const what = `${name}, ${wayName}`;
      const millions = (each: number) => 1e3 / each;
      bench.figure(`${what}: evaluations per second`, "M/s", millions(nanoseconds.halyard), {
        baseline: millions(fewest(nanoseconds)),
        goal: goalOf(name, way),
      });
      bench.note`${what}: nanoseconds per evaluation: ${listed(nanoseconds)}.`;
    }
    await perLibrary((library) => libraries[library].stop());
  }
  await measureAllocation(bench);
  await measureReferences(bench);
}

function startAll(bench: Bench, kinds: readonly FlagKind[], nodeOptions: readonly string[] = []) {
  return perLibrary(async (name) => {
    const library: Library = await startChild(bench, {
      ...{ program: "evaluation/library-process.ts", core: "server", nodeOptions },
      // Some libraries validate and log more in development.
      environment: { NODE_ENV: "production" },
    });
    await library.call.load(name, { flagKinds: kinds, flags, users });
    return library;
  });
}

async function measureSpeed(bench: Bench, libraries: PerLibrary<Library>, way: Way) {
  const measureMs = bench.quick ? 10 : 400;
  await warmUp(bench, libraries, way);
  const sides = libraryNames.map((name) => [
    name,
    () => libraries[name].call.speed(way, measureMs),
  ]);
  const medians = await alternate(bench, 7, Object.fromEntries(sides));
  return perLibrary(async (name) => medians[name]?.nanoseconds ?? Number.NaN);
}

const warmUp = ({ quick }: Bench, libraries: PerLibrary<Library>, way: Way) =>
  perLibrary((name) => libraries[name].call.speed(way, quick ? 20 : 1_000));

/** A young generation that is large enough to avoid collections while allocations are counted. */
const semiSpace = ["--min-semi-space-size=512", "--max-semi-space-size=512"];
const allocationSamples = 5;

async function measureAllocation(bench: Bench): Promise<void> {
  const libraries = await startAll(bench, flagKinds, ["--expose-gc", ...semiSpace]);
  for (const [way, wayName] of ways) {
    await warmUp(bench, libraries, way);
    const bytes = await perLibrary(async (name) => {
      const side = { taken: async () => ({ bytes: await libraries[name].call.allocation(way) }) };
      return (await alternate({ ...bench, quick: false }, allocationSamples, side)).taken.bytes;
    });
    const what = `mixed, ${wayName}: bytes allocated per evaluation`;
    bench.figure(what, "B", bytes.halyard, { baseline: fewest(bytes), goal: ratioBelow(1) });
    bench.note`${what}: ${listed(bytes)}.`;
  }
  await perLibrary((name) => libraries[name].stop());
}

const fewest = (values: PerLibrary<number>) => Math.min(...peerNames.map((name) => values[name]));

function listed(values: PerLibrary<number>): string {
  return libraryNames.map((name) => `${name} ${number(values[name])}`).join(", ");
}

/** Runs sequentially, because the libraries share a core. */
async function perLibrary<T>(each: (name: LibraryName) => Promise<T>): Promise<PerLibrary<T>> {
  const entries: [LibraryName, T][] = [];
  for (const name of libraryNames) entries.push([name, await each(name)]);
  return Object.fromEntries(entries) as PerLibrary<T>;
}
