import type { Bench } from "../benchmark.ts";
import { nowMs } from "../clock.ts";
import { median } from "../statistics.ts";
import { startReaders } from "../streams/readers.ts";
import { type Nats, startNats } from "../system/backends.ts";
import { awaitReady, startEdge } from "../system/services.ts";
import { snapshotContent } from "../system/snapshot-content.ts";
import { writeSnapshot } from "../system/write-snapshot.ts";
import { openFlagChanges } from "./flag-changes.ts";
import { serviceCpuMs } from "./service-cpu.ts";

export type ChangingEdge = {
  nats: Nats;
  measure(): Promise<{
    cpuMsPerChange: number;
    /** From the entry's publication to the event on the last stream. */
    medianLatencyMs: number;
  }>;
};

const warmUpChanges = 5;
const changes = 200;
const quickChanges = 3;
/** Limits the time of a measurement with slow changes. */
const measureMs = 4_000;

export async function startChangingEdge(
  bench: Bench,
  { flags, streams }: { flags: number; streams: number },
): Promise<ChangingEdge> {
  const nats = await startNats(bench);
  const content = snapshotContent({ environments: 1, flagsPerEnvironment: flags });
  await writeSnapshot(nats.url, content);
  const edge = await startEdge(bench, { natsUrl: nats.url, core: undefined });
  await awaitReady(edge);
  const readers = await startReaders(bench);
  await readers.open(edge.url, content.key, streams);
  const { publishNext } = await openFlagChanges(bench, nats.url, content);

  async function change(): Promise<number> {
    await readers.arm();
    const publishedMs = nowMs();
    await publishNext();
    const arrivedMs = await readers.arrivals();
    return arrivedMs.reduce((latest, next) => Math.max(latest, next), 0) - publishedMs;
  }

  return {
    nats,
    async measure() {
      for (let count = 0; count < warmUpChanges; count += 1) await change();
      const latenciesMs: number[] = [];
      const beforeMs = await serviceCpuMs(edge);
      const deadlineMs = nowMs() + measureMs;
      while (latenciesMs.length < (bench.quick ? quickChanges : changes) && nowMs() < deadlineMs)
        latenciesMs.push(await change());
      const usedMs = (await serviceCpuMs(edge)) - beforeMs;
      return {
        cpuMsPerChange: usedMs / latenciesMs.length,
        medianLatencyMs: median(latenciesMs),
      };
    },
  };
}
