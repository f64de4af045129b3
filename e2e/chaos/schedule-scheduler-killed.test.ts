import { eventually, stepClock } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { readQueue } from "../src/checks/schedule-agreement.ts";
import { beginScheduleStory } from "../src/stories/schedule-story.ts";
import { holdRow } from "../src/system/disturbances.ts";
import { killOne, startReadyScheduler } from "../src/system/replicas.ts";
import { type Scheduler, type System, startSystem } from "../src/system/system.ts";

/** Time to set a schedule, and to come to what is to go wrong with it. */
const soonMs = 600;
const hourMs = 60 * 60_000;

describe("given a scheduler that is killed with a due change in its hands", () => {
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

  it("sees it made by the next one, if it was sent and the broker could not say so", async () => {
    const { story, flag } = await begin("Sent, not acknowledged");
    const { gate } = only();
    const before = await passed();
    gate.shut();
    await story.schedule(flag, { enableInMs: soonMs });
    await eventually(() => gate.holds("schedule.due"));
    await kill();
    gate.open();
    await eventually(async () => (await passed()) > before, { because: "the message has come" });
    await gate.close();
    await replace();
    await story.applied(flag);
    expect(await story.faults()).toEqual([]);
  });

  it("has the next one settle it, if it was made and that was not recorded", async () => {
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

  it("settles once what was settled and not acknowledged, and goes on with the next change", async () => {
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
    // The second change, and not the first one again, which the one before had settled.
    expect(await countSettled(next)).toBe(1);
  });
});

/** How many changes a process has recorded as applied. */
async function countSettled({ metricsUrl }: Scheduler): Promise<number> {
  const text = await (await fetch(`${metricsUrl}/metrics`)).text();
  const line = /^halyard_scheduled_changes_total\{.*outcome="applied".*\} (\d+)$/m;
  return Number(line.exec(text)?.[1]);
}
