import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { beginScheduleStory } from "../src/stories/schedule-story.ts";
import { type System, startSystem } from "../src/system/system.ts";
import type { CreatedFlag } from "../src/traffic/changes.ts";

/** Time to create schedules before they are due. */
const soonMs = 600;
/** Longer than the maximum interval at which schedulers look for due changes. */
const outageMs = 1_500;
/** Longer than a publish waits for its acknowledgement, so that it times out and is repeated. */
const silenceMs = 3_000;

describe("given NATS that is unavailable when changes are due", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({ managements: 2, schedulers: 2, edges: 1 });
  });
  afterAll(() => system?.close());

  it("applies them when NATS is available again, except those cleared in the meantime", async () => {
    const story = await beginScheduleStory(system, { name: "NATS killed", flags: 3 });
    const [window, once, cleared] = story.flags as [CreatedFlag, CreatedFlag, CreatedFlag];
    await system.nats.kill();
    await story.schedule(window, { enableInMs: soonMs, disableInMs: soonMs + 10 });
    await story.schedule(once, { enableInMs: soonMs });
    await story.schedule(cleared, { enableInMs: soonMs });
    await delay(soonMs + outageMs);
    // A change that cannot be sent is not marked as sent, so it can still be cancelled.
    expect(await story.states(window)).toEqual(["armed", "waiting"]);
    expect(await story.clear(cleared)).toBe(204);
    story.expectMade(cleared, []);
    await system.nats.start();
    expect(await story.faults()).toEqual([]);
  });

  it("tolerates a broker that is suspended when they are due, and continues", async () => {
    const story = await beginScheduleStory(system, { name: "NATS stopped", flags: 10 });
    system.endsWithSystem(async () => system.nats.signal("SIGCONT"));
    for (const flag of story.flags)
      await story.schedule(flag, { enableInMs: soonMs, disableInMs: soonMs + 50 });
    system.nats.signal("SIGSTOP");
    await delay(soonMs + silenceMs);
    system.nats.signal("SIGCONT");
    expect(await story.faults()).toEqual([]);
  });
});
