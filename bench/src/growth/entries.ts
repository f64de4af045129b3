import type { Bench } from "../benchmark.ts";
import { nowMs } from "../clock.ts";
import { peakResidentBytes } from "../processes/process-usage.ts";
import { settledBytes } from "../streams/settled-memory.ts";
import { startNats, startPostgres } from "../system/backends.ts";
import {
  awaitReady,
  type Service,
  startEdge,
  startScheduler,
  startUsageMetering,
} from "../system/services.ts";
import { writeSnapshot } from "../system/write-snapshot.ts";
import type { Curve, Side } from "./curve.ts";
import { manyEntries } from "./many-entries.ts";
import { serviceCpuMs } from "./service-cpu.ts";

const followers = ["edge", "scheduler", "usage-metering"] as const;
const cpu = (follower: string) => `${follower}: CPU of a start`;
const seconds = (follower: string) => `${follower}: process start to ready`;
const resident = (follower: string) => `${follower}: resident memory after a start`;
const peak = (follower: string) => `${follower}: peak resident memory of a start`;

/** Nearly all entries are flags. */
export const entriesCurve: Curve = {
  name: "entries",
  summary: "start and memory of the services that follow the snapshot, by entries",
  method:
    "An edge, a scheduler and usage-metering start one after the other. CPU time does not include the loading of modules. Memory is read when it no longer changes.",
  of: "entries",
  sizes: [10_000, 100_000],
  quickSizes: [20, 100],
  rounds: 2,
  costs: followers.flatMap((follower) => [
    { what: cpu(follower), unit: "s" },
    { what: seconds(follower), unit: "s" },
    { what: resident(follower), unit: "MB" },
    { what: peak(follower), unit: "MB" },
  ]),
  open: async (bench) => (entries) => prepare(bench, entries),
};

async function prepare(bench: Bench, entries: number): Promise<Side> {
  const [nats, postgres] = await Promise.all([startNats(bench), startPostgres(bench)]);
  await writeSnapshot(nats.url, manyEntries(entries));
  const backends = { nats, postgres, core: undefined };
  const start = {
    edge: () => startEdge(bench, { natsUrl: nats.url, core: undefined }),
    scheduler: () => startScheduler(bench, backends),
    "usage-metering": () => startUsageMetering(bench, backends),
  };
  return {
    nats,
    postgres,
    async measure() {
      const samples: Record<string, number>[] = [];
      for (const follower of followers)
        samples.push(await measureStart(bench, follower, start[follower]));
      return Object.assign({}, ...samples) as Record<string, number>;
    },
  };
}

async function measureStart(bench: Bench, follower: string, start: () => Promise<Service>) {
  const beganMs = nowMs();
  const service = await start();
  await awaitReady(service);
  const tookMs = nowMs() - beganMs;
  const usedMs = await serviceCpuMs(service);
  const residentBytes = await settledBytes(bench, service.child.pid);
  const sample = {
    [cpu(follower)]: usedMs / 1e3,
    [seconds(follower)]: tookMs / 1e3,
    [resident(follower)]: residentBytes / 1e6,
    [peak(follower)]: peakResidentBytes(service.child.pid) / 1e6,
  };
  await service.child.stop();
  return sample;
}
