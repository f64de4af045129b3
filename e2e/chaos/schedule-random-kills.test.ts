import { randomInt } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { beginScheduleStory } from "../src/stories/schedule-story.ts";
import { killOne } from "../src/system/replicas.ts";
import { type System, startSystem } from "../src/system/system.ts";

const windows = 200;
const firstInMs = 1_500;
const spreadOverMs = 5_000;
const longestMs = 1_500;
/** Duration of half of the windows. Both changes are overdue when the first one is sent. */
const shortMs = 5;
/**
 * Changes that a killed scheduler did not send are sent after 30 seconds. Messages of a killed replica are redelivered
 * after five seconds, in the worst case several times in a row.
 */
const settleWithinMs = 90_000;

describe("given schedulers and managements that are killed and restarted at random", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({ managements: 2, schedulers: 3, edges: 1 });
  });
  afterAll(() => system?.close());

  /** Kills and starts processes, with two to four schedulers and up to two managements in service. */
  async function disturb(forMs: number): Promise<string[]> {
    const done: string[] = [];
    const starting: Promise<unknown>[] = [];
    system.endsWithSystem(async () => void (await Promise.allSettled(starting)));
    let schedulers = system.schedulers.length;
    const endsAtMs = performance.now() + forMs;
    while (performance.now() < endsAtMs) {
      await delay(randomInt(200, 1_200));
      const isTurnOfManagement = randomInt(3) === 0;
      if (isTurnOfManagement && system.managements.length > 0) {
        await killOne(system.managements);
        starting.push(system.startManagement());
        done.push("management replaced");
      } else if (!isTurnOfManagement && system.schedulers.length > 0) {
        await killOne(system.schedulers);
        const wanted = randomInt(2, 5);
        done.push(`scheduler killed, of ${schedulers} to ${wanted}`);
        for (schedulers -= 1; schedulers < wanted; schedulers += 1)
          starting.push(system.startScheduler());
      }
    }
    await Promise.all(starting);
    return done;
  }

  it("applies each of 200 windows once, in order", async () => {
    const story = await beginScheduleStory(system, { name: "At random", flags: windows });
    await Promise.all(
      story.flags.map((flag) => {
        const enableInMs = firstInMs + randomInt(spreadOverMs);
        const length = randomInt(2) === 0 ? shortMs : 1 + randomInt(longestMs);
        return story.schedule(flag, { enableInMs, disableInMs: enableInMs + length });
      }),
    );
    const disturbances = await disturb(firstInMs + spreadOverMs + longestMs);
    const faults = await story.faults({ withinMs: settleWithinMs });
    expect({ disturbances, faults }).toEqual({ disturbances, faults: [] });
  });
});
