import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Bench } from "../benchmark.ts";
import { nowMs } from "../clock.ts";
import { startChild } from "../processes/child-process.ts";
import { startNats } from "../system/backends.ts";
import { writeSnapshot } from "../system/write-snapshot.ts";
import type { Curve, Side } from "./curve.ts";
import { openFlagChanges } from "./flag-changes.ts";
import { manyEntries } from "./many-entries.ts";

const longest = "longest concurrent publication";
const current = "start of all followers to current";
const followers = 4;
const pauseMs = 10;

export const fullReadsCurve: Curve = {
  name: "full-reads",
  summary: `publications while ${followers} followers read the whole snapshot, by entries`,
  method:
    "Four followers start together and read everything. Meanwhile entries are published one at a time, for at most ten seconds. The longest publication is the longest delay of a write in the installation.",
  of: "entries",
  sizes: [10_000, 80_000],
  quickSizes: [20, 100],
  rounds: 3,
  costs: [
    { what: longest, unit: "ms" },
    { what: current, unit: "s" },
  ],
  open: async (bench) => (entries) => prepare(bench, entries),
};

async function prepare(bench: Bench, entries: number): Promise<Side> {
  const nats = await startNats(bench);
  const content = manyEntries(entries);
  await writeSnapshot(nats.url, content);
  const { publishNext } = await openFlagChanges(bench, nats.url, content);
  return {
    nats,
    async measure() {
      const child = await startChild(bench, {
        program: join(import.meta.dirname, "../changes/simulated-edges-process.ts"),
        core: undefined,
      });
      const beganMs = nowMs();
      let reading = true;
      const read = child.ask({ natsUrl: nats.url, start: followers }).finally(() => {
        reading = false;
      });
      let longestMs = 0;
      while (reading && nowMs() - beganMs < timeoutMs) {
        const publishedMs = nowMs();
        await publishNext();
        longestMs = Math.max(longestMs, nowMs() - publishedMs);
        await delay(pauseMs);
      }
      // Followers may need a pause in the writes to become current.
      await read;
      const tookMs = nowMs() - beganMs;
      await child.ask({ stop: true });
      await child.stop();
      return { [longest]: longestMs, [current]: tookMs / 1e3 };
    },
  };
}

/** Maximum duration of the writes. */
const timeoutMs = 10_000;
