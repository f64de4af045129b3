import { setTimeout as delay } from "node:timers/promises";
import type { Bench } from "../benchmark.ts";
import { launchSimulated } from "../changes/changing-system.ts";
import { cpuMsOfTree, peakResidentBytes, settledBytes } from "../processes/process-usage.ts";
import { count } from "../reporting.ts";
import { startNats, startPostgres } from "../system/backends.ts";
import {
  awaitReady,
  isPublishing,
  isReady,
  launchEdge,
  launchService,
  type Service,
  serviceCpuMs,
} from "../system/services.ts";
import { startSnapshot } from "../system/snapshot-edge.ts";
import { during, nowMs, until } from "../time.ts";
import { growthBenchmark } from "./curve.ts";
import { insertFlags, startFilledDatabase } from "./filled-management.ts";
import { manyEntries, openFlagChanges } from "./flag-changes.ts";

const followers = ["edge", "scheduler", "usage-metering"] as const;
const startCosts = [
  [": CPU of a start", "s"],
  [": process start to ready", "s"],
  [": resident memory after a start", "MB"],
  [": peak resident memory of a start", "MB"],
] as const;

/** Nearly all entries are flags. */
export const entriesCurve = growthBenchmark({
  name: "entries",
  summary: "start and memory of the services that follow the snapshot, by entries",
  method:
    "An edge, a scheduler and usage-metering start one after the other. CPU time does not include the loading of modules. Memory is read when it no longer changes.",
  sizes: { of: "entries", full: [10_000, 100_000], quick: [20, 100], rounds: 2 },
  costs: Object.fromEntries(
    followers
      .flatMap((name) => startCosts.map(([what, unit]) => [`${name}${what}`, unit] as const))
      .map((cost) => [cost[0], cost]),
  ),
  async prepare(bench, entries) {
    const postgres = await startPostgres(bench);
    const nats = await startSnapshot(bench, manyEntries(entries));
    return async () => {
      const costs: Record<string, number> = {};
      for (const follower of followers) {
        const backends = { nats, postgres };
        const measured = await measureStart(bench, () =>
          follower === "edge"
            ? launchEdge(bench, { nats })
            : launchService(bench, follower, backends),
        );
        for (const [index, [what]] of startCosts.entries())
          costs[`${follower}${what}`] = measured[index] ?? Number.NaN;
      }
      return costs;
    };
  },
});

async function measureStart(bench: Bench, start: () => Promise<Service>): Promise<number[]> {
  const beganMs = nowMs();
  const service = await start();
  await awaitReady(service);
  const seconds = (nowMs() - beganMs) / 1e3;
  const cpu = (await serviceCpuMs(service)) / 1e3;
  const resident = (await settledBytes(bench, service.pid)) / 1e6;
  const peak = peakResidentBytes(service.pid) / 1e6;
  await service.stop();
  return [cpu, seconds, resident, peak];
}

const entriesUnderWrites = 20_000;
const startTimeoutMs = 30_000;

export const startUnderWritesCurve = growthBenchmark({
  name: "start-under-writes",
  summary: "start of an edge while entries are published, by writes per second",
  method:
    "An edge starts while another process publishes changes of the last 100 flags of the snapshot.",
  sizes: { of: "writes per second", full: [0, 50], quick: [0, 50], rounds: 3 },
  costs: { seconds: ["process start to ready", "s", 1.5] },
  note: `${count(entriesUnderWrites)} entries. A start counts as ${startTimeoutMs / 1e3} s if the edge is not ready by then.`,
  async prepare(bench, perSecond) {
    const content = manyEntries(bench.quick ? 20 : entriesUnderWrites);
    const nats = await startSnapshot(bench, content);
    const publishNext = await openFlagChanges(bench, nats, content);
    return async () => {
      const published: Promise<void>[] = [];
      const publish = () => void published.push(publishNext());
      const timer = perSecond === 0 ? undefined : setInterval(publish, 1_000 / perSecond);
      const beganMs = nowMs();
      const edge = await launchEdge(bench, { nats });
      while (nowMs() - beganMs < startTimeoutMs && !(await isReady(edge))) await delay(20);
      const seconds = (nowMs() - beganMs) / 1e3;
      clearInterval(timer);
      await Promise.all(published);
      await edge.stop();
      return { seconds };
    };
  },
});

const readers = 4;
/** Maximum duration of the writes. */
const writesMs = 10_000;

export const fullReadsCurve = growthBenchmark({
  name: "full-reads",
  summary: `publications while ${readers} followers read the whole snapshot, by entries`,
  method:
    "Four followers start together and read everything. Meanwhile entries are published one at a time, for at most ten seconds. The longest publication is the longest delay of a write in the installation.",
  sizes: { of: "entries", full: [10_000, 80_000], quick: [20, 100], rounds: 3 },
  costs: {
    longestMs: ["longest concurrent publication", "ms"],
    seconds: ["start of all followers to current", "s"],
  },
  async prepare(bench, entries) {
    const content = manyEntries(entries);
    const nats = await startSnapshot(bench, content);
    const publishNext = await openFlagChanges(bench, nats, content);
    return async () => {
      const simulated = await launchSimulated(bench);
      const beganMs = nowMs();
      let longestMs = 0;
      // Followers may need a pause in the writes to become current.
      await during(simulated.follow(nats, readers), async () => {
        const publishedMs = nowMs();
        if (publishedMs - beganMs < writesMs) await publishNext();
        longestMs = Math.max(longestMs, nowMs() - publishedMs);
        await delay(10);
      });
      const seconds = (nowMs() - beganMs) / 1e3;
      await simulated.stop();
      return { longestMs, seconds };
    };
  },
});

export const rebuildCurve = growthBenchmark({
  name: "rebuild",
  summary: "rebuild of the snapshot in an empty NATS, by entries",
  method:
    "Management starts with an empty NATS and writes the whole snapshot. The time begins when the process listens.",
  sizes: { of: "entries", full: [10_000, 100_000], quick: [20, 100], rounds: 3 },
  costs: {
    time: ["time per entry", "µs"],
    cpu: ["CPU of management per entry", "µs"],
    database: ["CPU of PostgreSQL per entry", "µs"],
  },
  async prepare(bench, entries) {
    const { postgres } = await startFilledDatabase(bench, {
      fill: (sql, tenant) => insertFlags(sql, tenant, entries),
    });
    return async () => {
      const nats = await startNats(bench);
      const management = await launchService(bench, "management", { postgres, nats });
      const [beganMs, databaseBeforeMs] = [nowMs(), cpuMsOfTree(postgres.pid)];
      await until("the snapshot is complete", () => isPublishing(management), {
        timeoutMs: 120_000,
      });
      const perEntry = (usedMs: number) => (usedMs * 1e3) / entries;
      const costs = {
        time: perEntry(nowMs() - beganMs),
        cpu: perEntry(await serviceCpuMs(management)),
        database: perEntry(cpuMsOfTree(postgres.pid) - databaseBeforeMs),
      };
      await management.stop();
      await nats.stop();
      return costs;
    };
  },
});
