import { availableParallelism, loadavg } from "node:os";
import type { Bench, Benchmark, Outcome } from "../benchmark.ts";
import { describeProfile } from "../profile/compare-profiles.ts";
import { profilingInto } from "../profile/profiling.ts";
import type { Figure } from "../reporting/figure.ts";
import { alternate } from "../rounds.ts";
import { measureBareUpdates } from "./bare-updates.ts";
import { type ChangingSystem, clients, startChangingSystem } from "./changing-system.ts";
import { openCommitCounts } from "./commit-counts.ts";
import { type EdgeSet, startEdges } from "./following-edges.ts";

export const changesBenchmark: Benchmark = {
  name: "changes",
  pinned: false,
  summary: `changes a second that one management process takes from ${clients} clients, and the time of one change, with and without edges`,
  run,
  profile,
};

const manyEdges = 50;
const quickManyEdges = 5;
/** Fewer events than this share of the answers would mean that changes changed nothing. */
const leastEventShare = 0.95;

type Counts = Awaited<ReturnType<typeof openCommitCounts>>;

async function run(bench: Bench): Promise<Outcome> {
  const system = await startChangingSystem(bench);
  const { postgres, nats } = system;
  const counts = await openCommitCounts(bench, postgres);
  const measureMs = bench.quick ? 150 : 3_000;
  const rounds = bench.quick ? 1 : 3;
  bench.say("warming up");
  await measure(system, { counts, measureMs });
  const many = bench.quick ? quickManyEdges : manyEdges;
  bench.say(`with no edge, 1, 2 and ${many} simulated ones, and bare updates, in turn`);
  const followed = (edges: EdgeSet) => () =>
    measureFollowed(bench, system, { counts, measureMs, edges });
  const { alone, one, two, fifty, bare } = await alternate(rounds, {
    alone: followed({ processes: 0 }),
    one: followed({ processes: 1 }),
    two: followed({ processes: 2 }),
    fifty: followed({ simulated: many }),
    bare: () =>
      measureBareUpdates({
        postgres,
        flagIds: system.tenant.flagIds,
        writers: clients,
        measureMs: measureMs / 2,
      }),
  });
  bench.say("without waiting for the disk");
  await counts.awaitDisk(false);
  await system.restartManagement();
  await measure(system, { counts, measureMs });
  const { careless } = await alternate(rounds, {
    careless: () => measure(system, { counts, measureMs }),
  });

  const unit = "/s";
  return {
    figures: [
      {
        what: "no edge following, beside bare one-row updates",
        unit,
        measured: alone.perSecond,
        baseline: bare.perSecond,
      },
      { what: "1 edge following", unit, measured: one.perSecond },
      { what: "2 edges following", unit, measured: two.perSecond },
      { what: `${many} simulated edges following`, unit, measured: fifty.perSecond },
      { what: "no edge, commits not awaiting the disk", unit, measured: careless.perSecond },
      { what: "no edge: median latency", unit: "ms", measured: alone.medianLatencyMs },
      { what: "no edge: p99 latency", unit: "ms", measured: alone.p99LatencyMs },
      ...figuresOfOneClient({
        "no edge": alone,
        "1 edge": one,
        "2 edges": two,
        [`${many} simulated edges`]: fifty,
      }),
    ],
    notes: [
      ...describeBusyMachine(),
      `No edge: ${describe(alone)}. ${describeDisk(alone)}`,
      `2 edges: ${describe(two)}.`,
      `${many} simulated edges: ${describe(fifty)}.`,
      `Answers before the write was in effect: ${one.incomplete + two.incomplete + fifty.incomplete}.`,
      `Commits not awaiting the disk: ${describe(careless)}.`,
    ],
    servers: { PostgreSQL: postgres.version, NATS: nats.version },
  };
}

/** The load of all clients, and then of a single one, while a number of edges follows. */
async function measureFollowed(
  bench: Bench,
  system: ChangingSystem,
  { counts, measureMs, edges }: { counts: Counts; measureMs: number; edges: EdgeSet },
) {
  const following = await startEdges(bench, system, edges);
  const incomplete = await system.readMetric(incompleteWaits);
  const sample = await measure(system, { counts, measureMs, edges: following.pids });
  const single = await system.change({ measureMs, connections: 1 });
  const incompleteAfter = await system.readMetric(incompleteWaits);
  await following.stop();
  return {
    ...sample,
    singleMedianMs: single.medianLatencyMs,
    singleP99Ms: single.p99LatencyMs,
    incomplete: incompleteAfter - incomplete,
  };
}

const incompleteWaits = "halyard_write_waits_incomplete_total";

type Followed = Awaited<ReturnType<typeof measureFollowed>>;

function figuresOfOneClient(sides: Readonly<Record<string, Followed>>): Figure[] {
  return Object.entries(sides).flatMap(([name, { singleMedianMs, singleP99Ms }]) => [
    { what: `one client, ${name}: median latency`, unit: "ms", measured: singleMedianMs },
    { what: `one client, ${name}: p99 latency`, unit: "ms", measured: singleP99Ms },
  ]);
}

/** Load average before the benchmark; the benchmark itself adds to later values. */
const loadBefore = loadavg()[0] ?? 0;

function describeBusyMachine(): string[] {
  if (loadBefore < availableParallelism()) return [];
  return [
    "The machine was busy with other work all the time, so times are several times those of an idle one. Compare only figures of this run.",
  ];
}

type Sample = Awaited<ReturnType<typeof measure>>;

async function measure(
  system: ChangingSystem,
  {
    counts,
    measureMs,
    edges = [],
  }: { counts: Counts; measureMs: number; edges?: readonly number[] },
) {
  const before = await counts.read();
  const result = await system.change({ measureMs, alsoWatch: edges });
  const after = await counts.read();
  if (after.events - before.events < leastEventShare * result.answers)
    throw new Error("some of the changes changed nothing");
  const { elapsedMs } = result;
  const [management = 0, database = 0, broker = 0, ...others] = result.cpuMs.map(
    (cpuMs) => cpuMs / elapsedMs,
  );
  const syncs = after.syncs - before.syncs;
  return {
    perSecond: (result.answers / elapsedMs) * 1e3,
    medianLatencyMs: result.medianLatencyMs,
    p99LatencyMs: result.p99LatencyMs,
    management,
    managementWaits: (result.coreWaitMs[0] ?? 0) / elapsedMs,
    database,
    broker,
    edges: others.reduce((sum, share) => sum + share, 0),
    generator: result.generatorBusy,
    machine: result.machineBusy,
    commitsPerSync: (after.commits - before.commits) / Math.max(1, syncs),
    syncMs: (after.syncMs - before.syncMs) / Math.max(1, syncs),
  };
}

function describeDisk({ syncMs, commitsPerSync }: Sample): string {
  return (
    `A wait for the disk took ${syncMs.toFixed(2)} ms and served ${commitsPerSync.toFixed(1)} ` +
    "commits (a change is one commit, and each batch of the relay one more)."
  );
}

function describe(sample: Sample): string {
  const { management, managementWaits, database, broker, edges, generator, machine } = sample;
  const percent = (share: number) => `${Math.round(share * 100)} %`;
  const others = Math.max(0, machine - management - database - broker - edges - generator);
  return (
    `CPU in percent of one core: management ${percent(management)} ` +
    `(its thread waited for a core for ${percent(managementWaits)} of the time), ` +
    `PostgreSQL ${percent(database)}, NATS ${percent(broker)}, edges ${percent(edges)}, ` +
    `clients ${percent(generator)}, processes that have nothing to do with it ` +
    `${percent(others)}; of ${availableParallelism()} cores. ${boundBy(sample)}`
  );
}

const busy = 0.9;

function boundBy({ management, managementWaits, machine }: Sample): string {
  if (management > busy) return "Bound by management's one thread";
  if (machine > busy * availableParallelism()) return "Bound by the machine's cores, all busy";
  if (management + managementWaits > busy)
    return "Bound by the machine's cores, which management's thread shares with PostgreSQL";
  return "Bound by waiting: no processor was busy all the time";
}

/** Where management's time of a change goes. */
async function profile(bench: Bench): Promise<string> {
  const profiling = profilingInto(bench);
  const system = await startChangingSystem(bench, profiling.nodeOptions);
  await system.change({ measureMs: bench.quick ? 50 : 2_000 });
  const run = await system.change({ measureMs: bench.quick ? 200 : 5_000 });
  await system.management.child.stop();
  const { pid } = system.management.child;
  return [
    "management's self time a change",
    describeProfile({ profile: profiling.read(pid), run }),
  ].join("\n\n");
}
