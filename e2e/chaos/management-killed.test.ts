import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { awaitSettled, readAll } from "../src/checks/agreement.ts";
import { beginChapter } from "../src/stories/chapter.ts";
import {
  awaitLockWaiters,
  endLease,
  forgetMessageIdsAtOnce,
  lockTable,
  takeLease,
  unsentRows,
} from "../src/system/disturbances.ts";
import { awaitLeader, type Management, type System, startSystem } from "../src/system/system.ts";
import { must } from "../src/system/tenancy.ts";

describe("given a management that is killed after it committed a change", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({ managements: 1, edges: 2 });
  });
  afterAll(() => system?.close());

  const only = () => system.managements[0] as Management;
  const logged = async () => (await readAll(system.nats.url, "FLAG_EVENTS")).length;

  async function replace(): Promise<void> {
    await endLease(system.sql);
    await system.startManagement();
  }

  async function killIt(): Promise<void> {
    const killed = only();
    system.managements.shift();
    await killed.kill();
  }

  async function chapterWithLeader(name: string) {
    if (system.managements.length === 0) await replace();
    const chapter = await beginChapter(system, { name, steps: 10 });
    await awaitLeader(system.managements);
    // On a busy machine, the flags of the chapter are created before all of their events are published. Tests that
    // count events, or hold back the next one, would include these events.
    await awaitSettled(system.sql);
    await forgetMessageIdsAtOnce(system.nats.url);
    const switchOn = (step: number) =>
      must(`${only().url}/api/v1/flags/${chapter.ladder[step]?.id}`, {
        method: "PATCH",
        key: chapter.tenant.serverKey,
        body: { enabled: true },
      });
    return { chapter, switchOn };
  }

  it("publishes the change from the next process if it was not published", async () => {
    const { chapter, switchOn } = await chapterWithLeader("Not published");
    const releaseLease = await takeLease(system.sql);
    await eventually(() => only().log().includes("no longer leading"));
    const before = await logged();
    await switchOn(0);
    expect(await unsentRows(system.sql)).toBe(2);
    await killIt();
    await system.startManagement();
    expect(await logged()).toBe(before);
    await releaseLease();
    expect(await chapter.faults()).toEqual([]);
    expect(await logged()).toBe(before + 1);
  });

  it("does not publish it again if the broker stored it but the acknowledgement was lost", async () => {
    const { chapter, switchOn } = await chapterWithLeader("Not acknowledged");
    const before = await logged();
    const { gate } = only();
    gate.shut();
    const answered = switchOn(0);
    await eventually(() => gate.holds("flag.toggled"));
    await killIt();
    await answered.catch(() => undefined);
    gate.open();
    await eventually(async () => (await logged()) === before + 1);
    expect(await unsentRows(system.sql)).toBe(2);
    await replace();
    expect(await chapter.faults()).toEqual([]);
    expect(await logged()).toBe(before + 1);
  });

  it("does not publish it again if it was acknowledged but not recorded", async () => {
    const { chapter, switchOn } = await chapterWithLeader("Not recorded");
    const before = await logged();
    const unlock = await lockTable(system.sql, "relay_streams", "share");
    await switchOn(0);
    await awaitLockWaiters(system.sql, "relay_streams");
    await eventually(async () => (await logged()) === before + 1);
    await killIt();
    await unlock();
    expect(await unsentRows(system.sql)).toBe(2);
    await replace();
    expect(await chapter.faults()).toEqual([]);
    expect(await logged()).toBe(before + 1);
  });
});
