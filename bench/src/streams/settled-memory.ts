import { setTimeout as delay } from "node:timers/promises";
import type { Bench } from "../benchmark.ts";
import { residentBytes } from "../processes/process-usage.ts";

const pollIntervalMs = 1_000;
const quickPollIntervalMs = 50;
/** Maximum time to wait for stable memory. */
const maxPolls = 10;
const settledShare = 0.005;

/** Returns the resident memory after it was stable for a second. */
export async function settledBytes({ quick }: Bench, pid: number): Promise<number> {
  let before = residentBytes(pid);
  for (let look = 0; look < maxPolls; look += 1) {
    await delay(quick ? quickPollIntervalMs : pollIntervalMs);
    const now = residentBytes(pid);
    if (Number.isNaN(now) || Math.abs(now - before) < settledShare * before) return now;
    before = now;
  }
  return before;
}
