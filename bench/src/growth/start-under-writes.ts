import { setTimeout as delay } from "node:timers/promises";
import type { Bench } from "../benchmark.ts";
import { nowMs } from "../clock.ts";
import { startNats } from "../system/backends.ts";
import { startEdge } from "../system/services.ts";
import { writeSnapshot } from "../system/write-snapshot.ts";
import type { Curve, Side } from "./curve.ts";
import { type FlagChanges, openFlagChanges } from "./flag-changes.ts";
import { manyEntries } from "./many-entries.ts";

const seconds = "process start to ready";
const entries = 20_000;
const quickEntries = 20;
const timeoutMs = 30_000;
const pollIntervalMs = 20;

export const startUnderWritesCurve: Curve = {
  name: "start-under-writes",
  summary: "start of an edge while entries are published, by writes per second",
  method:
    "An edge starts while another process publishes changes of the last 100 flags of the snapshot.",
  of: "writes per second",
  sizes: [0, 50],
  quickSizes: [0, 50],
  rounds: 3,
  costs: [{ what: seconds, unit: "s", ratioBelow: 1.5 }],
  notes: [
    `${entries.toLocaleString("en-US")} entries. A start counts as ${timeoutMs / 1e3} s if the edge is not ready by then.`,
  ],
  open: async (bench) => (perSecond) => prepare(bench, perSecond),
};

async function prepare(bench: Bench, perSecond: number): Promise<Side> {
  const nats = await startNats(bench);
  const content = manyEntries(bench.quick ? quickEntries : entries);
  await writeSnapshot(nats.url, content);
  const changes = await openFlagChanges(bench, nats.url, content);
  return {
    nats,
    async measure() {
      const writes = publishSteadily(changes, perSecond);
      const beganMs = nowMs();
      const edge = await startEdge(bench, { natsUrl: nats.url, core: undefined });
      while (nowMs() - beganMs < timeoutMs && !(await isReady(edge.metricsUrl)))
        await delay(pollIntervalMs);
      const tookMs = nowMs() - beganMs;
      await writes.stop();
      await edge.child.stop();
      return { [seconds]: tookMs / 1e3 };
    },
  };
}

async function isReady(metricsUrl: string): Promise<boolean> {
  const response = await fetch(`${metricsUrl}/readyz`);
  await response.arrayBuffer();
  return response.ok;
}

function publishSteadily({ publishNext }: FlagChanges, perSecond: number) {
  const published: Promise<void>[] = [];
  const timer =
    perSecond === 0
      ? undefined
      : setInterval(() => void published.push(publishNext()), 1_000 / perSecond);
  return {
    async stop() {
      clearInterval(timer);
      await Promise.all(published);
    },
  };
}
