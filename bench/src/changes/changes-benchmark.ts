import { availableParallelism, loadavg } from "node:os";
import type { Bench, Benchmark } from "../benchmark.ts";
import { percent } from "../reporting.ts";
import { alternate } from "../statistics.ts";
import {
  type ChangingSystem,
  clients,
  startChangingSystem,
  startEdges,
} from "./changing-system.ts";
import { measureBareUpdates, openCommitCounts } from "./commits.ts";

export const changesBenchmark: Benchmark = {
  name: "changes",
  pinned: false,
  summary: "throughput and latency of flag changes, with and without edges",
  method:
    "32 clients send `PATCH /api/v1/flags/:id` for 1,000 flags to one management process; PostgreSQL uses `fsync`. A response is sent when every live edge has applied the change. `one client` sends one change at a time. Simulated edges follow the snapshot and report like an edge, in one process. The baseline updates one row per transaction, by 32 writers. All processes share two cores.\n\n" +
    "A change is one transaction of seven statements in two round trips. Commits of one organization that the audit log records follow one another, so the time of a WAL sync bounds the rate of the one organization here. The relay then publishes two messages and records their acknowledgements, in batches. The two cores limit the throughput: management's thread runs or waits for a core nearly all the time, because PostgreSQL's processes use the same cores. Most of PostgreSQL's time is the fixed cost of a statement. More throughput on two cores would need several changes in one transaction, which would wait for each other's locks and fail together.",
  run,
};

const manyEdges = 50;
const quickManyEdges = 5;
/** Minimum ratio of events to responses. Fewer events mean that some requests changed nothing. */
const minEventShare = 0.95;
type Edges = Parameters<typeof startEdges>[2];
type Counts = Awaited<ReturnType<typeof openCommitCounts>>;
type Sample = Awaited<ReturnType<typeof measure>>;

async function run(bench: Bench): Promise<void> {
  const system = await startChangingSystem(bench);
  const counts = await openCommitCounts(bench, system.postgres);
  const measureMs = bench.quick ? 150 : 3_000;
  const rounds = 3;
  await measure(system, { counts, measureMs });
  const many = bench.quick ? quickManyEdges : manyEdges;
  const followed = (edges: Edges) => () =>
    measureFollowed(bench, system, { counts, measureMs, edges });
  const updates = { postgres: system.postgres, flagIds: system.tenant.flagIds, writers: clients };
  const { alone, one, two, fifty, bare } = await alternate(bench, rounds, {
    ...{ alone: followed({ count: 0 }), one: followed({ count: 1 }), two: followed({ count: 2 }) },
    fifty: followed({ count: many, simulated: true }),
    bare: () => measureBareUpdates({ ...updates, measureMs: measureMs / 2 }),
  });
  await counts.doNotAwaitDisk();
  await system.restartManagement();
  await measure(system, { counts, measureMs });
  const { unsynced } = await alternate(bench, rounds, {
    unsynced: () => measure(system, { counts, measureMs }),
  });

  const rate = (what: string, { perSecond }: Sample) =>
    bench.figure(`${what}: changes per second`, "/s", perSecond);
  const besideBare = "no edge: changes per second vs. bare one-row updates";
  bench.compare(besideBare, "/s", [alone, bare], "perSecond");
  rate("1 edge", one);
  rate("2 edges", two);
  rate(`${many} simulated edges`, fifty);
  rate("no edge, commits do not wait for the disk", unsynced);
  bench.figure("no edge: median latency", "ms", alone.medianLatencyMs);
  bench.figure("no edge: p99 latency", "ms", alone.p99LatencyMs);
  const sides = { "no edge": alone, "1 edge": one, "2 edges": two };
  for (const [name, side] of Object.entries({ ...sides, [`${many} simulated edges`]: fifty })) {
    bench.figure(`one client, ${name}: median latency`, "ms", side.singleMedianMs);
    bench.figure(`one client, ${name}: p99 latency`, "ms", side.singleP99Ms);
  }
  if (loadBefore >= availableParallelism())
    bench.note`The machine was busy with other work, so times are several times those of an idle machine. Compare only figures of this run.`;
  bench.note`No edge: ${describe(alone)}. A WAL sync took ${alone.syncMs.toFixed(2)} ms for ${alone.commitsPerSync.toFixed(1)} commits (a change is one commit, and each batch of the relay another one).`;
  bench.note`2 edges: ${describe(two)}.`;
  bench.note`${many} simulated edges: ${describe(fifty)}.`;
  const incomplete = one.incomplete + two.incomplete + fifty.incomplete;
  bench.note`Responses before the change was in effect: ${incomplete}.`;
  bench.note`Commits that do not wait for the disk: ${describe(unsynced)}.`;
}

/** Load average before the benchmark, which adds to later values. */
const loadBefore = loadavg()[0] ?? 0;

/** Measures all clients, then a single one, while edges follow. */
async function measureFollowed(
  bench: Bench,
  system: ChangingSystem,
  { counts, measureMs, edges }: { counts: Counts; measureMs: number; edges: Edges },
) {
  const readIncomplete = () => system.readMetric("halyard_writes_unconfirmed_total");
  const following = await startEdges(bench, system, edges);
  const before = await readIncomplete();
  const sample = await measure(system, { counts, measureMs, edges: following.pids });
  const single = await system.change({ measureMs, connections: 1 });
  const incomplete = (await readIncomplete()) - before;
  await following.stop();
  return {
    ...{ ...sample, incomplete },
    singleMedianMs: single.medianLatencyMs,
    singleP99Ms: single.p99LatencyMs,
  };
}

async function measure(
  system: ChangingSystem,
  options: { counts: Counts; measureMs: number; edges?: readonly number[] },
) {
  const { counts, measureMs, edges = [] } = options;
  const before = await counts.read();
  const result = await system.change({ measureMs, alsoWatch: edges });
  const after = await counts.read();
  if (after.events - before.events < minEventShare * result.answers)
    throw new Error("some requests changed nothing");
  const { elapsedMs } = result;
  const shares = result.cpuMs.map((cpuMs) => cpuMs / elapsedMs);
  const [management = 0, database = 0, broker = 0, ...others] = shares;
  const syncs = Math.max(1, after.syncs - before.syncs);
  return {
    perSecond: (result.answers / elapsedMs) * 1e3,
    medianLatencyMs: result.medianLatencyMs,
    p99LatencyMs: result.p99LatencyMs,
    ...{ management, database, broker },
    edges: others.reduce((sum, share) => sum + share, 0),
    generator: result.generatorBusy,
    commitsPerSync: (after.commits - before.commits) / syncs,
    syncMs: (after.syncMs - before.syncMs) / syncs,
  };
}

function describe({ management, database, broker, edges, generator }: Sample): string {
  return `CPU in percent of one core: management ${percent(management)}, PostgreSQL ${percent(database)}, NATS ${percent(broker)}, edges ${percent(edges)}, clients ${percent(generator)}; of ${availableParallelism()} cores`;
}
