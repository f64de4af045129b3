import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { beginScheduleStory } from "../src/stories/schedule-story.ts";
import { holdRow } from "../src/system/disturbances.ts";
import { type System, startSystem } from "../src/system/system.ts";
import type { CreatedFlag } from "../src/traffic/changes.ts";

/** Time to create schedules, and to kill PostgreSQL before they are due. */
const soonMs = 1_500;
/** Long enough to reveal retries whose interval grows too much. */
const outageMs = 1_000;

describe("given PostgreSQL that is unavailable when changes are due", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({ managements: 2, schedulers: 2, edges: 1, postgres: "own" });
  });
  afterAll(() => system?.close());

  it("applies them when PostgreSQL is available again", async () => {
    const story = await beginScheduleStory(system, { name: "PostgreSQL killed", flags: 5 });
    for (const flag of story.flags)
      await story.schedule(flag, { enableInMs: soonMs, disableInMs: soonMs + 20 });
    await system.postgres?.kill();
    await delay(soonMs + outageMs);
    await system.postgres?.start();
    expect(await story.faults()).toEqual([]);
  });

  it("applies uncommitted changes and settles committed ones if PostgreSQL fails while they are in progress", async () => {
    const story = await beginScheduleStory(system, {
      name: "PostgreSQL killed meanwhile",
      flags: 2,
    });
    const [unmade, unsettled] = story.flags as [CreatedFlag, CreatedFlag];
    const heldFlags = [
      await holdRow(system.sql, "management.flags", unsettled.id),
      await holdRow(system.sql, "management.flags", unmade.id),
    ];
    for (const flag of story.flags) await story.schedule(flag, { enableInMs: soonMs / 2 });
    await heldFlags[0]?.awaitWaiters(2);
    const change = await story.openChange(unsettled);
    const heldChange = await holdRow(system.sql, "scheduler.scheduled_changes", change);
    await heldFlags[0]?.release();
    await heldChange.awaitWaiters();
    expect(await story.made(unsettled)).toEqual([true]);
    expect(await story.made(unmade)).toEqual([]);
    await system.postgres?.kill();
    await delay(outageMs);
    await system.postgres?.start();
    expect(await story.faults()).toEqual([]);
  });
});
