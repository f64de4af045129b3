import { availableParallelism, loadavg } from "node:os";
import type { Bench, Benchmark, Outcome } from "../benchmark.ts";
import type { Figure } from "../reporting/figure.ts";
import { alternate } from "../rounds.ts";
import { measureBareUpdates } from "./bare-updates.ts";
import { type ChangingSystem, clients, startChangingSystem } from "./changing-system.ts";
import { openCommitCounts } from "./commit-counts.ts";
import { type EdgeSet, startEdges } from "./following-edges.ts";

export const changesBenchmark: Benchmark = {
  name: "changes",
  pinned: false,
  summary: "throughput and latency of flag changes, with and without edges",
  method:
    "32 clients send `PATCH /api/v1/flags/:id` for 1,000 flags to one management process; PostgreSQL uses `fsync`. A response is sent when every live edge has applied the change. " +
    "`one client` sends one change at a time. Simulated edges follow the snapshot and report like an edge, in one process. " +
    "The baseline updates one row per transaction, by 32 writers. All processes share two cores.\n\n" +
    "A change is one transaction of six statements in two round trips. The relay then publishes two messages and " +
    "records their acknowledgements, in batches. The two cores limit the throughput: management's thread runs or " +
    "waits for a core nearly all the time, because PostgreSQL's processes use the same cores. Most of PostgreSQL's " +
    "time is the fixed cost of a statement. More throughput on two cores would need several changes in one " +
    "transaction, which would wait for each other's locks and fail together.",
  run,
};

const manyEdges = 50;
const quickManyEdges = 5;
/** Minimum ratio of events to responses. Fewer events mean that some requests changed nothing. */
const minEventShare = 0.95;

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
  bench.say(`no edge, 1, 2 and ${many} simulated edges, and bare updates, in turn`);
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
  const { unsynced } = await alternate(rounds, {
    unsynced: () => measure(system, { counts, measureMs }),
  });

  const unit = "/s";
  return {
    figures: [
      {
        what: "no edge: changes per second vs. bare one-row updates",
        unit,
        measured: alone.perSecond,
        baseline: bare.perSecond,
      },
      { what: "1 edge: changes per second", unit, measured: one.perSecond },
      { what: "2 edges: changes per second", unit, measured: two.perSecond },
      { what: `${many} simulated edges: changes per second`, unit, measured: fifty.perSecond },
      {
        what: "no edge, commits do not wait for the disk: changes per second",
        unit,
        measured: unsynced.perSecond,
      },
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
      `Responses before the change was in effect: ${one.incomplete + two.incomplete + fifty.incomplete}.`,
      `Commits that do not wait for the disk: ${describe(unsynced)}.`,
    ],
    servers: { PostgreSQL: postgres.version, NATS: nats.version },
  };
}

/** Measures all clients, then a single one, while edges follow. */
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

const incompleteWaits = "halyard_writes_unconfirmed_total";

type Followed = Awaited<ReturnType<typeof measureFollowed>>;

function figuresOfOneClient(sides: Readonly<Record<string, Followed>>): Figure[] {
  return Object.entries(sides).flatMap(([name, { singleMedianMs, singleP99Ms }]) => [
    { what: `one client, ${name}: median latency`, unit: "ms", measured: singleMedianMs },
    { what: `one client, ${name}: p99 latency`, unit: "ms", measured: singleP99Ms },
  ]);
}

/** Load average before the benchmark, which adds to later values. */
const loadBefore = loadavg()[0] ?? 0;

function describeBusyMachine(): string[] {
  if (loadBefore < availableParallelism()) return [];
  return [
    "The machine was busy with other work, so times are several times those of an idle machine. Compare only figures of this run.",
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
  if (after.events - before.events < minEventShare * result.answers)
    throw new Error("some requests changed nothing");
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
    `A WAL sync took ${syncMs.toFixed(2)} ms for ${commitsPerSync.toFixed(1)} ` +
    "commits (a change is one commit, and each batch of the relay another one)."
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
    `clients ${percent(generator)}, unrelated processes ` +
    `${percent(others)}; of ${availableParallelism()} cores. ${boundBy(sample)}`
  );
}

const busy = 0.9;

function boundBy({ management, managementWaits, machine }: Sample): string {
  if (management > busy) return "Limited by management's thread.";
  if (machine > busy * availableParallelism()) return "Limited by the cores of the machine.";
  if (management + managementWaits > busy)
    return "Limited by the cores of the machine, which management's thread shares with PostgreSQL.";
  return "Limited by waiting: no core was busy all the time.";
}
