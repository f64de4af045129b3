import { eventually, stepClock } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { readQueue } from "../../src/checks/schedule-agreement.ts";
import { beginScheduleStory } from "../../src/stories/schedule-story.ts";
import { awaitForgotten, endLease, type HeldRow, holdRow } from "../../src/system/disturbances.ts";
import { killOne, startReadyScheduler } from "../../src/system/replicas.ts";
import {
  type Management,
  type Scheduler,
  type System,
  startSystem,
} from "../../src/system/system.ts";
import type { CreatedFlag } from "../../src/traffic/changes.ts";

/** Time to create a schedule, and to prepare the fault. */
const soonMs = 600;
const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
/** More than the time after which a sent change without an outcome is sent again. */
const untilSentAgainMs = 31_000;

/** One failure of each kind. `e2e/chaos` has further ones. */
describe("given due changes", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({ managements: 1, schedulers: 1, edges: 1 });
  });
  afterAll(() => system?.close());

  const passed = async () => (await readQueue(system.nats.url)).passed;
  const step = (byMs: number) => stepClock(system.sql, "scheduler", byMs);

  async function begin(name: string) {
    const story = await beginScheduleStory(system, { name });
    const [flag] = story.flags;
    if (flag === undefined) throw new Error("a flag");
    return { story, flag };
  }

  it("sends a claimed change from the next scheduler, and tolerates the late copy", async () => {
    const { story, flag } = await begin("Claimed, not sent");
    const { gate } = system.schedulers[0] as Scheduler;
    gate.shutBefore("schedule.due");
    await story.schedule(flag, { enableInMs: soonMs });
    await eventually(() => gate.holds("schedule.due"));
    expect(await story.states(flag)).toEqual(["sent"]);
    await killOne(system.schedulers);
    await startReadyScheduler(system);
    await step(untilSentAgainMs);
    await story.applied(flag);
    await step(0);
    await story.switchByHand(flag, false);
    await awaitForgotten();
    const before = await passed();
    gate.open();
    await eventually(async () => (await passed()) > before, { because: "the copy is stored" });
    await gate.close();
    expect(await story.faults()).toEqual([]);
  });

  it("reports a committed change from the next management, without a second change", async () => {
    const { story, flag } = await begin("Not reported");
    const { gate } = system.managements[0] as Management;
    const held = await holdRow(system.sql, "management.flags", flag.id);
    await story.schedule(flag, { enableInMs: soonMs });
    await held.awaitWaiters();
    gate.shutBefore("schedule.resolved");
    await held.release();
    await eventually(() => gate.holds("schedule.resolved"));
    await killOne(system.managements);
    await endLease(system.sql);
    expect(await story.made(flag)).toEqual([true]);
    expect(await story.states(flag)).toEqual(["sent"]);
    await system.startManagement();
    await story.switchByHand(flag, false);
    await story.applied(flag);
    await awaitForgotten();
    const before = await passed();
    gate.open();
    await eventually(async () => (await passed()) > before, { because: "the message is stored" });
    await gate.close();
    expect(await story.faults()).toEqual([]);
  });

  it("reports changes of an outage of NATS, without a second change", async () => {
    const story = await beginScheduleStory(system, { name: "NATS killed meanwhile", flags: 3 });
    const held: HeldRow[] = [];
    for (const flag of story.flags) {
      held.push(await holdRow(system.sql, "management.flags", flag.id));
      await story.schedule(flag, { enableInMs: soonMs });
    }
    await held[0]?.awaitWaiters(story.flags.length);
    await system.nats.kill();
    for (const row of held) await row.release();
    for (const flag of story.flags) {
      await eventually(async () => (await story.made(flag)).length === 1);
      await story.switchByHand(flag, false);
      expect(await story.states(flag)).toEqual(["sent"]);
    }
    await system.nats.start();
    expect(await story.faults()).toEqual([]);
  });

  it("cancels a change in progress whose flag is deleted before it is applied", async () => {
    const story = await beginScheduleStory(system, { name: "Deleted first" });
    const [flag] = story.flags as [CreatedFlag];
    const held = await holdRow(system.sql, "management.flags", flag.id);
    const removed = story.remove(flag);
    await held.awaitWaiters(1);
    await story.schedule(flag, { enableInMs: soonMs, disableInMs: soonMs + 10 });
    await held.awaitWaiters(2);
    await held.release();
    await removed;
    story.expectMade(flag, []);
    expect(await story.faults()).toEqual([]);
    expect(await story.states(flag)).toEqual(["cancelled", "cancelled"]);
  });

  it("rolls back to the state before the change that is being applied", async () => {
    const story = await beginScheduleStory(system, { name: "Rolled back" });
    const [flag] = story.flags as [CreatedFlag];
    const held = await holdRow(system.sql, "management.flags", flag.id);
    await story.schedule(flag, { enableInMs: soonMs });
    await held.awaitWaiters(1);
    const rolledBack = story.rollBack(flag);
    await held.awaitWaiters(2);
    await held.release();
    expect(await rolledBack).toMatchObject({ enabled: false });
    expect(await story.faults()).toEqual([]);
    expect(await story.made(flag)).toEqual([true]);
  });

  it("applies all changes that a step of the clock makes due, in order and once", async () => {
    const story = await beginScheduleStory(system, { name: "Forwards", flags: 10 });
    const [later, ...windows] = story.flags as [CreatedFlag, ...CreatedFlag[]];
    for (const flag of windows)
      await story.schedule(flag, { enableInMs: 20 * minuteMs, disableInMs: 50 * minuteMs });
    await story.schedule(later, { enableInMs: 70 * minuteMs });
    await step(hourMs);
    for (const flag of windows) await story.applied(flag);
    await step(0);
    await step(hourMs);
    story.expectMade(later, []);
    expect(await story.faults()).toEqual([]);
    expect(await story.states(later)).toEqual(["armed"]);
    await step(0);
  });
});
