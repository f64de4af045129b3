import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { buildSnapshot } from "../../src/snapshot/snapshot.ts";
import {
  createSnapshotHolder,
  type SnapshotHolder,
  type SnapshotUpdate,
} from "../../src/snapshot/snapshot-holder.ts";
import { deletedFlag, flagEntry, id } from "../builders.ts";

const epoch = id("epoch");
const hourMs = 3_600_000;
let nowMs: number;
let holder: SnapshotHolder;
let updates: SnapshotUpdate[];

afterEach(() => void jest.useRealTimers());

beforeEach(() => {
  nowMs = Date.parse("2027-01-31T09:00:00.000Z");
  holder = createSnapshotHolder({ now: () => nowMs, pace: { pauseMs: () => 0 } });
  updates = [];
  holder.onUpdate((update) => updates.push(update));
});

describe("given a holder that follows NATS", () => {
  const held = flagEntry({ version: 1 });
  beforeEach(() => {
    holder.replace(epoch, [held]);
    updates.length = 0;
  });

  it("applies all entries of one turn in one batch", async () => {
    for (let version = 2; version < 50; version += 1) holder.apply(flagEntry({ version }));
    expect(updates).toEqual([]);
    await nextTurn();
    expect(updates).toHaveLength(1);
    expect(updates[0]?.changed.environments).toEqual(new Set([id("env")]));
    expect(versionHeld()).toBe(49);
  });

  it("applies all entries that arrive in the pause after a change in one batch", async () => {
    // Fake timers end the pause, so that the speed of the machine does not matter.
    jest.useFakeTimers({ doNotFake: ["setImmediate", "nextTick", "queueMicrotask"] });
    let pauseMs = 0;
    const pausing = createSnapshotHolder({ now: () => nowMs, pace: { pauseMs: () => pauseMs } });
    const seen: SnapshotUpdate[] = [];
    pausing.onUpdate((update) => void seen.push(update));
    pausing.replace(epoch, [held]);
    pauseMs = 30;
    pausing.apply(flagEntry({ version: 2 }));
    await nextTurn();
    pausing.apply(flagEntry({ version: 3 }));
    await nextTurn();
    expect(seen).toHaveLength(1);
    jest.advanceTimersByTime(pauseMs);
    expect(seen).toHaveLength(2);
    expect(seen[1]?.taken).toHaveLength(2);
  });

  it("reports a revision as applied after the listener has received its updates", async () => {
    const log: unknown[] = [];
    holder.onUpdate(({ taken }) => log.push(taken.length));
    holder.onApplied(() => log.push(holder.applied?.revision));
    holder.reached({ epoch, revision: 1 });
    holder.apply(flagEntry({ version: 2 }));
    holder.reached({ epoch, revision: 2 });
    holder.apply(flagEntry({ version: 3 }));
    holder.reached({ epoch, revision: 3 });
    expect(log).toEqual([1]);
    await nextTurn();
    expect(log).toEqual([1, 2, 3]);
  });

  it("reports a revision as applied if its entries change nothing", async () => {
    holder.apply(held);
    holder.reached({ epoch, revision: 4 });
    await nextTurn();
    expect(holder.applied).toEqual({ epoch, revision: 4 });
  });

  it("publishes no entry of a full read before the read is finished", () => {
    const read = holder.beginRead();
    read.take(flagEntry({ version: 8 }));
    read.take(flagEntry({ flag_id: id("flag", 2) }));
    expect(versionHeld()).toBe(1);
    expect(versionHeld(id("flag", 2))).toBeUndefined();
    expect(updates).toEqual([]);
    read.finish(epoch);
    expect(versionHeld()).toBe(8);
    expect(versionHeld(id("flag", 2))).toBe(1);
    expect(updates).toHaveLength(1);
  });

  it("publishes no change if nothing is newer", async () => {
    holder.apply(held);
    await nextTurn();
    expect(updates).toEqual([]);
  });

  it("applies waiting entries before a full read, so that older entries of the read do not win", async () => {
    holder.apply(flagEntry({ version: 7 }));
    holder.replace(epoch, [held]);
    expect(versionHeld()).toBe(7);
    await nextTurn();
    expect(versionHeld()).toBe(7);
  });

  it("keeps entries missing from a read within a day of following, and drops them later", () => {
    nowMs += 23 * hourMs;
    holder.replace(epoch, []);
    expect(versionHeld()).toBe(1);
    nowMs += 25 * hourMs;
    holder.replace(epoch, []);
    expect(versionHeld()).toBeUndefined();
  });

  it("returns the age of its snapshot", () => {
    nowMs += 5_000;
    expect(holder.staleMs()).toBe(5_000);
    holder.confirmCurrent();
    expect(holder.staleMs()).toBe(0);
  });

  it("does not return to the cache", () => {
    const cached = buildSnapshot(epoch, [deletedFlag(9)]);
    holder.restore({ snapshot: cached, currentAtMs: 0 });
    expect(holder.source).toBe("nats");
    expect(versionHeld()).toBe(1);
  });
});

describe("given a holder without a snapshot", () => {
  it("has no snapshot, no source and no age", () => {
    expect(holder.snapshot).toBeUndefined();
    expect(holder.source).toBe("none");
    expect(holder.staleMs()).toBeUndefined();
  });

  it("serves the snapshot of the cache and reports its age", () => {
    const currentAtMs = nowMs - hourMs;
    holder.restore({ snapshot: buildSnapshot(epoch, [flagEntry()]), currentAtMs });
    expect(holder.source).toBe("cache");
    expect(holder.staleMs()).toBe(hourMs);
    expect(updates).toHaveLength(1);
  });

  it("applies the first read from NATS to the cache, and drops entries missing from it", () => {
    const other = flagEntry({ flag_id: id("flag", 2) });
    const cached = buildSnapshot(epoch, [flagEntry({ version: 3 }), other]);
    holder.restore({ snapshot: cached, currentAtMs: nowMs - 1 });
    holder.replace(epoch, [flagEntry({ version: 2 })]);
    expect(holder.source).toBe("nats");
    expect(versionHeld()).toBe(3);
    expect(versionHeld(id("flag", 2))).toBeUndefined();
  });
});

function versionHeld(flagId = id("flag")) {
  return holder.snapshot?.environments.get(id("env"))?.flags.get(flagId)?.version;
}
