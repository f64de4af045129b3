import { snapshotBucket } from "@halyard/contracts";
import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { awaitSettled, faultsOfSnapshot } from "../src/checks/agreement.ts";
import { beginChapter } from "../src/stories/chapter.ts";
import { deleteStream, endLease } from "../src/system/disturbances.ts";
import { type System, startSystem } from "../src/system/system.ts";
import { must } from "../src/system/tenancy.ts";

describe("given a snapshot that was rebuilt after many changes", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({ managements: 1, edges: 1 });
  });
  afterAll(() => system?.close());

  it("gets no older entries from the next leader", async () => {
    const chapter = await beginChapter(system, { name: "Many changes", steps: 1 });
    const flag = chapter.ladder[0];
    const set = (name: string, enabled: boolean) =>
      must(`${system.managements[0]?.url}/api/v1/flags/${flag?.id}`, {
        method: "PATCH",
        key: chapter.tenant.serverKey,
        body: { name, enabled },
      });
    await chapter.watcher.stop();
    for (let round = 0; round < 40; round += 1) await set("many", round % 2 === 0);
    const management = system.managements[0];
    await deleteStream(system.nats.url, snapshotBucket.streamName);
    await eventually(
      async () => (await faultsOfSnapshot(system.sql, system.nats.url)).length === 0,
    );
    await set("final", true);
    await awaitSettled(system.sql);
    await management?.kill();
    await endLease(system.sql);
    system.managements.shift();
    const next = await system.startManagement();
    await eventually(() => next.log().includes("leading the relay"));
    expect(await chapter.faults()).toEqual([]);
  });
});
