import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { awaitSettled } from "../src/checks/agreement.ts";
import { beginChapter } from "../src/stories/chapter.ts";
import {
  awaitLockWaiters,
  awaitNoConnections,
  forgetMessageIdsAtOnce,
  lockTable,
} from "../src/system/disturbances.ts";
import { awaitLeader, type Management, type System, startSystem } from "../src/system/system.ts";
import { must } from "../src/system/tenancy.ts";

describe("given a leader that is suspended while it reads the state of the streams", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({ managements: 1, edges: 1 });
  });
  afterAll(() => system?.close());

  it("overwrites nothing that the next leader has published in the meantime", async () => {
    const chapter = await beginChapter(system, { name: "Stopped early", steps: 20 });
    const switchOn = (management: Management, step: number) =>
      must(`${management.url}/api/v1/flags/${chapter.ladder[step]?.id}`, {
        method: "PATCH",
        key: chapter.tenant.serverKey,
        body: { enabled: true },
      });
    const first = system.managements[0] as Management;
    await switchOn(first, 0);
    await awaitSettled(system.sql);
    await forgetMessageIdsAtOnce(system.nats.url);
    await first.kill();
    system.managements.shift();
    await awaitNoConnections(system.sql);

    // The leader has read the end of the log from the broker, and waits for the row that describes it.
    const unlock = await lockTable(system.sql, "relay_streams", "access exclusive");
    const stopped = await system.startManagement();
    await awaitLockWaiters(system.sql, "relay_streams");
    stopped.signal("SIGSTOP");
    await unlock();
    system.managements.shift();
    const next = await system.startManagement();
    await awaitLeader([next]);
    for (let step = 1; step < 15; step += 1) await switchOn(next, step);
    await awaitSettled(system.sql);

    stopped.signal("SIGCONT");
    await eventually(() => stopped.log().includes("the relay starts over"));
    for (let step = 15; step < 20; step += 1) await switchOn(next, step);
    expect(await chapter.faults()).toEqual([]);
  });
});
