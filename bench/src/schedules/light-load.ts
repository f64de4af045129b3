import type { Bench } from "../benchmark.ts";
import { flagKey } from "../system/tenant.ts";
import { until } from "../until.ts";
import type { FlagStream } from "./flag-stream.ts";
import { patchFlags, setSchedules } from "./requests.ts";
import type { SchedulingSystem } from "./scheduling-system.ts";

/** Latencies from the due time to the stream, and from a `PATCH` to the stream. */
export type Latencies = { scheduledMs: readonly number[]; patchedMs: readonly number[] };

const changes = 200;
const overMs = 20_000;
/** All schedules are set before this delay ends. */
const leadMs = 2_000;
const quick = { changes: 10, overMs: 500, leadMs: 500 };

/**
 * Enables flags by schedule at random times, without other load, then disables each by `PATCH`. All flags are
 * off afterwards.
 */
export async function measureLightLoad(bench: Bench, system: SchedulingSystem): Promise<Latencies> {
  const stream = system.streams[0] as FlagStream;
  const { changes: count, ...times } = bench.quick ? quick : { changes, overMs, leadMs };
  const firstMs = Date.now() + times.leadMs;
  const dueMs = Array.from(
    { length: count },
    () => firstMs + Math.floor(Math.random() * times.overMs),
  );
  stream.expect(true);
  await setSchedules(system, {
    count,
    action: "enable",
    at: (number) => new Date(dueMs[number] as number),
  });
  await until("all scheduled changes arrived", async () => stream.arrivedMs.size === count);
  const scheduledMs = dueMs.map((ms, number) => arrivedMs(stream, number) - ms);

  const patchedMs: number[] = [];
  for (let number = 0; number < count; number += 1) {
    stream.expect(false);
    const sentMs = Date.now();
    await patchFlags(system, { first: number, count: 1, action: "disable" });
    await until("the change arrived", async () => stream.arrivedMs.size === 1);
    patchedMs.push(arrivedMs(stream, number) - sentMs);
  }
  return { scheduledMs, patchedMs };
}

function arrivedMs(stream: FlagStream, number: number): number {
  return stream.arrivedMs.get(flagKey(number)) ?? Number.NaN;
}
