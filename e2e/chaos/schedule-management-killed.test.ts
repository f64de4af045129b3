import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { readQueue } from "../src/checks/schedule-agreement.ts";
import { beginScheduleStory } from "../src/stories/schedule-story.ts";
import { awaitLockWaiters, endLease, lockTable } from "../src/system/disturbances.ts";
import { killOne } from "../src/system/replicas.ts";
import { type Management, type System, startSystem } from "../src/system/system.ts";

/** Time to create a schedule, and to prepare the fault. */
const soonMs = 600;

/** Subject of the acknowledgement of a due change. Management acknowledges other messages on the same connection. */
const acknowledgement = "$JS.ACK.SCHEDULE.";

describe("given a management that is killed while it applies a due change", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({ managements: 1, schedulers: 1, edges: 1 });
  });
  afterAll(() => system?.close());

  const only = () => system.managements[0] as Management;

  async function begin(name: string) {
    const story = await beginScheduleStory(system, { name });
    const [flag] = story.flags;
    if (flag === undefined) throw new Error("a flag");
    return { story, flag };
  }

  async function kill(): Promise<void> {
    await killOne(system.managements);
    await endLease(system.sql);
  }

  it("is applied by another replica if the transaction was not committed", async () => {
    const { story, flag } = await begin("Not committed");
    const unlock = await lockTable(system.sql, "inbox", "share");
    await story.schedule(flag, { enableInMs: soonMs });
    await awaitLockWaiters(system.sql, "inbox");
    await system.startManagement();
    await kill();
    await unlock();
    expect(await story.made(flag)).toEqual([]);
    await story.applied(flag);
    expect(await story.faults()).toEqual([]);
  });

  it("is reported again by the next process, and not applied again, if it was reported and not acknowledged", async () => {
    const { story, flag } = await begin("Not acknowledged");
    const { gate } = only();
    gate.shutBefore(acknowledgement);
    await story.schedule(flag, { enableInMs: soonMs });
    await eventually(() => gate.holds(acknowledgement));
    await kill();
    await gate.close();
    await story.applied(flag);
    expect((await readQueue(system.nats.url)).waiting).toBe(1);
    await system.startManagement();
    // A repetition would switch the flag on again.
    expect(await story.rollBack(flag)).toMatchObject({ enabled: false });
    expect(await story.faults()).toEqual([]);
  });
});
