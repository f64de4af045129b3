import { setTimeout as delay } from "node:timers/promises";
import { eventually, type ServiceProcess, stepClock } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { beginScheduleStory, type ScheduleStory } from "../src/stories/schedule-story.ts";
import { holdRow } from "../src/system/disturbances.ts";
import { type System, startSystem } from "../src/system/system.ts";
import type { CreatedFlag } from "../src/traffic/changes.ts";

const hourMs = 60 * 60_000;
/** Time to create a schedule, and to prepare the concurrent change. */
const soonMs = 600;
/** Number of changes that are cancelled at about the time when they are due. */
const raced = 96;
const racedAtOnce = 8;
const raceInMs = 250;
const closerByMs = 8;

describe("given flags that are changed while their schedules become due", () => {
  let system: System;
  let gateway: ServiceProcess;
  beforeAll(async () => {
    system = await startSystem({ managements: 2, schedulers: 2, edges: 1 });
    gateway = await system.startGateway();
  });
  afterAll(() => system?.close());

  it("applies nothing to a flag that was deleted before", async () => {
    const story = await beginScheduleStory(system, { name: "Deleted before", flags: 2 });
    const [deleted, other] = story.flags as [CreatedFlag, CreatedFlag];
    for (const flag of [deleted, other]) await story.schedule(flag, { enableInMs: hourMs });
    await story.remove(deleted);
    await eventually(async () => (await story.states(deleted)).join() === "cancelled");
    story.expectMade(deleted, []);
    await stepClock(system.sql, "scheduler", hourMs);
    await story.applied(other);
    await stepClock(system.sql, "scheduler", 0);
    expect(await story.faults()).toEqual([]);
  });

  it("applies a change in progress whose flag is deleted after it, and not the next change", async () => {
    const story = await beginScheduleStory(system, { name: "Deleted afterwards" });
    const [flag] = story.flags as [CreatedFlag];
    const held = await holdRow(system.sql, "management.flags", flag.id);
    await story.schedule(flag, { enableInMs: soonMs, disableInMs: soonMs + 3_000 });
    await held.awaitWaiters(1);
    const removed = story.remove(flag);
    await held.awaitWaiters(2);
    await held.release();
    await removed;
    story.expectMade(flag, [true]);
    await eventually(async () => (await story.states(flag))[1] === "cancelled");
    expect(await story.faults()).toEqual([]);
    expect(await story.states(flag)).toEqual(["applied", "cancelled"]);
  });

  type Ending = { how: string; end: (story: ScheduleStory, flag: CreatedFlag) => Promise<unknown> };
  const endings: Ending[] = [
    {
      how: "cleared",
      end: (story, flag) => eventually(async () => (await story.clear(flag, gateway)) === 204),
    },
    { how: "replaced", end: (story, flag) => story.schedule(flag, { enableInMs: hourMs }) },
  ];

  it.each(endings)(
    "applies nothing of a schedule after the response that it is $how",
    async ({ how, end }) => {
      const story = await beginScheduleStory(system, { name: how, flags: raced });
      const left = [...story.flags];
      const outcomes = new Set<number>();
      const race = async () => {
        let endAfterMs = raceInMs;
        for (let flag = left.pop(); flag !== undefined; flag = left.pop()) {
          const setAt = await story.schedule(flag, { enableInMs: raceInMs });
          // On a busy machine, the time may have passed before the schedule was created.
          await delay(Math.max(0, setAt.getTime() + endAfterMs - Date.now()));
          await end(story, flag);
          const made = await story.made(flag);
          story.expectMade(flag, made);
          outcomes.add(made.length);
          // Makes the next race closer, depending on which side was first this time.
          endAfterMs += made.length === 0 ? closerByMs : -closerByMs;
        }
      };
      const races = Array.from({ length: racedAtOnce }, race);
      system.endsWithSystem(async () => void (await Promise.allSettled(races)));
      await Promise.all(races);
      expect(await story.faults()).toEqual([]);
      expect(outcomes).toEqual(new Set([0, 1]));
    },
  );
});
