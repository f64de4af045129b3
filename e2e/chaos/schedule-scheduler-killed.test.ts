import { eventually, stepClock } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { readQueue } from "../src/checks/schedule-agreement.ts";
import { beginScheduleStory } from "../src/stories/schedule-story.ts";
import { holdRow } from "../src/system/disturbances.ts";
import { killOne, startReadyScheduler } from "../src/system/replicas.ts";
import { type Scheduler, type System, startSystem } from "../src/system/system.ts";

/** Time to create a schedule, and to prepare the fault. */
const soonMs = 600;
const hourMs = 60 * 60_000;

describe("given a scheduler that is killed while it handles a due change", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({ managements: 1, schedulers: 1, edges: 1 });
  });
  afterAll(() => system?.close());

  const only = () => system.schedulers[0] as Scheduler;
  const kill = () => killOne(system.schedulers);
  const replace = () => startReadyScheduler(system);
  const passed = async () => (await readQueue(system.nats.url)).passed;

  async function begin(name: string) {
    const story = await beginScheduleStory(system, { name });
    const [flag] = story.flags;
    if (flag === undefined) throw new Error("a flag");
    return { story, flag };
  }

  it("is applied by the next process if it was sent and the acknowledgement was lost", async () => {
    const { story, flag } = await begin("Sent, not acknowledged");
    const { gate } = only();
    const before = await passed();
    gate.shutBefore("schedule.due");
    await story.schedule(flag, { enableInMs: soonMs });
    await eventually(() => gate.holds("schedule.due"));
    await kill();
    gate.open();
    await eventually(async () => (await passed()) > before, { because: "the message is stored" });
    await gate.close();
    await replace();
    await story.applied(flag);
    expect(await story.faults()).toEqual([]);
  });

  it("is settled by the next process if it was applied and that was not recorded", async () => {
    const { story, flag } = await begin("Made, not settled");
    const heldFlag = await holdRow(system.sql, "management.flags", flag.id);
    await story.schedule(flag, { enableInMs: soonMs });
    await heldFlag.awaitWaiters();
    const change = await story.openChange(flag);
    const heldChange = await holdRow(system.sql, "scheduler.scheduled_changes", change);
    await heldFlag.release();
    await heldChange.awaitWaiters();
    await kill();
    await heldChange.endWaiters();
    await heldChange.release();
    expect(await story.states(flag)).toEqual(["sent"]);
    await replace();
    await story.applied(flag);
    expect(await story.faults()).toEqual([]);
  });

  it("is settled once if it was settled and not acknowledged, and the next change follows", async () => {
    const { story, flag } = await begin("Settled, not acknowledged");
    const { gate } = only();
    gate.shutBefore("+ACK");
    await story.schedule(flag, { enableInMs: soonMs, disableInMs: hourMs });
    await eventually(() => gate.holds("+ACK"));
    expect(await story.states(flag)).toEqual(["applied", "armed"]);
    await kill();
    await gate.close();
    expect((await readQueue(system.nats.url)).waiting).toBe(1);
    const next = await replace();
    await stepClock(system.sql, "scheduler", hourMs);
    await story.applied(flag);
    await stepClock(system.sql, "scheduler", 0);
    expect(await story.faults()).toEqual([]);
    // The next process settles the second change, and not the first one again, which was already settled.
    expect(await countSettled(next)).toBe(1);
  });
});

/** Returns the number of changes that a process has recorded as applied. */
async function countSettled({ metricsUrl }: Scheduler): Promise<number> {
  const text = await (await fetch(`${metricsUrl}/metrics`)).text();
  const line = /^halyard_scheduled_changes_total\{.*outcome="applied".*\} (\d+)$/m;
  return Number(line.exec(text)?.[1]);
}
