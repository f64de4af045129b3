import type { Bench } from "../benchmark.ts";
import { flagKey } from "../system/tenant.ts";
import { until } from "../until.ts";
import type { FlagStream } from "./flag-stream.ts";
import { patchFlags, setSchedules } from "./requests.ts";
import type { SchedulingSystem } from "./scheduling-system.ts";

/** How long it takes from a change's time to the bytes on a stream, and from a `PATCH`. */
export type Latencies = { scheduledMs: readonly number[]; patchedMs: readonly number[] };

const changes = 200;
const overMs = 20_000;
/** The schedules are set until then. */
const leadMs = 2_000;
const quick = { changes: 10, overMs: 500, leadMs: 500 };

/**
 * Flags come on one by one at random moments, while nothing else goes on. Then each is switched off by
 * hand, which takes the same way without the scheduler. It leaves all flags off, as they were.
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
  await until("all scheduled changes came", async () => stream.arrivedMs.size === count);
  const scheduledMs = dueMs.map((ms, number) => arrivedMs(stream, number) - ms);

  const patchedMs: number[] = [];
  for (let number = 0; number < count; number += 1) {
    stream.expect(false);
    const sentMs = Date.now();
    await patchFlags(system, { first: number, count: 1, action: "disable" });
    await until("the change came", async () => stream.arrivedMs.size === 1);
    patchedMs.push(arrivedMs(stream, number) - sentMs);
  }
  return { scheduledMs, patchedMs };
}

function arrivedMs(stream: FlagStream, number: number): number {
  return stream.arrivedMs.get(flagKey(number)) ?? Number.NaN;
}
