import { setTimeout as delay } from "node:timers/promises";
import { stepClock } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { beginScheduleStory } from "../src/stories/schedule-story.ts";
import { holdRow } from "../src/system/disturbances.ts";
import { killOne, startReadyScheduler } from "../src/system/replicas.ts";
import { type System, startSystem } from "../src/system/system.ts";
import type { CreatedFlag } from "../src/traffic/changes.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
/** Time to create a schedule, and to set the clock before it is due. */
const soonMs = 600;
const betweenStepsMs = 300;

describe("given schedulers whose clock is set by an hour", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({ managements: 2, schedulers: 2, edges: 1 });
  });
  afterAll(() => system?.close());

  const step = (byMs: number) => stepClock(system.sql, "scheduler", byMs);

  it("applies nothing early after a step backwards, and everything at its time", async () => {
    const story = await beginScheduleStory(system, { name: "Backwards", flags: 2 });
    const [flag, other] = story.flags as [CreatedFlag, CreatedFlag];
    await story.schedule(flag, { enableInMs: 3 * soonMs, disableInMs: 3 * soonMs + 10 });
    await step(-hourMs);
    // When this change is applied, the other one would be due without the step.
    await story.schedule(other, { enableInMs: 4 * soonMs });
    await story.applied(other);
    expect(await story.states(flag)).toEqual(["armed", "waiting"]);
    await step(0);
    await story.applied(flag);
    expect(await story.faults()).toEqual([]);
  });

  it("applies a change once, even if the clock steps while it is in progress", async () => {
    const story = await beginScheduleStory(system, { name: "Meanwhile" });
    const [flag] = story.flags as [CreatedFlag];
    const held = await holdRow(system.sql, "management.flags", flag.id);
    await story.schedule(flag, { enableInMs: soonMs, disableInMs: 30 * minuteMs });
    await held.awaitWaiters();
    for (const byMs of [-hourMs, hourMs, -hourMs]) {
      await step(byMs);
      expect(await story.states(flag)).toEqual(["sent", "waiting"]);
    }
    await held.release();
    await step(hourMs);
    await story.applied(flag);
    await step(0);
    expect(await story.faults()).toEqual([]);
  });

  it("applies each change once, in order, while the clock steps back and forth", async () => {
    const story = await beginScheduleStory(system, { name: "To and fro", flags: 40 });
    for (const [index, flag] of story.flags.entries()) {
      const first = soonMs + index * 50;
      const second = index % 2 === 0 ? first + 5 : first + 30 * minuteMs;
      await story.schedule(flag, { enableInMs: first, disableInMs: second });
    }
    for (const byMs of [hourMs, -hourMs, hourMs, 0, -hourMs, hourMs, -hourMs, hourMs]) {
      await step(byMs);
      await delay(betweenStepsMs);
    }
    expect(await story.faults()).toEqual([]);
    await step(0);
  });

  it("applies everything overdue after an outage of an hour, in order and once", async () => {
    const story = await beginScheduleStory(system, { name: "An hour away", flags: 60 });
    const [later, ...windows] = story.flags as [CreatedFlag, ...CreatedFlag[]];
    for (const [index, flag] of windows.entries())
      await story.schedule(flag, {
        enableInMs: (5 + (index % 7)) * minuteMs,
        disableInMs: (30 - (index % 5)) * minuteMs,
      });
    await story.schedule(later, { enableInMs: 70 * minuteMs });
    while (system.schedulers.length > 0) await killOne(system.schedulers);
    await step(hourMs);
    await Promise.all([startReadyScheduler(system), startReadyScheduler(system)]);
    for (const flag of windows) await story.applied(flag);
    story.expectMade(later, []);
    expect(await story.faults()).toEqual([]);
    expect(await story.states(later)).toEqual(["armed"]);
    await step(0);
  });
});
