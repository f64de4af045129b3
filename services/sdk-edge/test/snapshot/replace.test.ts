import type { SnapshotEntry } from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";
import { beginFullRead } from "../../src/snapshot/replace.ts";
import { buildSnapshot, isDeleted, isNothing, type Snapshot } from "../../src/snapshot/snapshot.ts";
import { apiKey, deletedFlag, flagEntry, id, revokedKey } from "../builders.ts";

const epoch = id("epoch", 1);
const newEpoch = id("epoch", 2);
const one = flagEntry({ flag_id: id("flag", 1), version: 5 });
const two = flagEntry({ flag_id: id("flag", 2), version: 5 });
const afterGap = { followedUntilNow: false };
const following = { followedUntilNow: true };

function replaced(
  held: SnapshotEntry[],
  read: SnapshotEntry[],
  rule: { followedUntilNow: boolean },
) {
  return fullRead(buildSnapshot(epoch, held), { epoch, entries: read }, rule);
}

function fullRead(
  held: Snapshot | undefined,
  { epoch, entries }: { epoch: string; entries: SnapshotEntry[] },
  rule: { followedUntilNow: boolean },
) {
  const read = beginFullRead(held);
  // A copy, because every entry that is read is parsed again.
  for (const entry of entries) read.take(JSON.parse(JSON.stringify(entry)));
  return read.finish(held, { epoch, ...rule });
}

describe("given a full read with the same epoch", () => {
  it.each([
    { case: "a newer version that was read", held: 4, read: 5, stays: 5 },
    { case: "a newer version that is held but lost in the broker", held: 5, read: 4, stays: 5 },
  ])("keeps $case", ({ held, read, stays }) => {
    const { snapshot } = replaced(
      [flagEntry({ version: held })],
      [flagEntry({ version: read })],
      afterGap,
    );
    expect(versions(snapshot)).toEqual({ [id("flag")]: stays });
  });

  it("keeps a deletion that the broker has lost", () => {
    const { snapshot } = replaced([deletedFlag(6)], [flagEntry({ version: 5 })], afterGap);
    expect(liveFlags(snapshot)).toEqual([]);
  });

  it("keeps a revocation that the broker has lost", () => {
    const key = apiKey();
    const { snapshot } = replaced([revokedKey(key.keyId)], [key.entry], afterGap);
    expect(snapshot.keys.get(key.keyId)).toMatchObject({ deleted: true });
  });

  it("drops entries missing from the read after a long gap", () => {
    const { snapshot, changed } = replaced([one, two], [one], afterGap);
    expect(liveFlags(snapshot)).toEqual([id("flag", 1)]);
    expect(changed.environments).toEqual(new Set([id("env")]));
  });

  it("drops an environment missing from the read after a long gap", () => {
    const otherEnvsEntry = flagEntry({ environment_id: id("env", 2) });
    const { snapshot, changed } = replaced([one, otherEnvsEntry], [one], afterGap);
    expect([...snapshot.environments.keys()]).toEqual([id("env")]);
    expect(changed.environments).toEqual(new Set([id("env", 2)]));
  });

  it("keeps entries missing from the read if the edge followed until now and missed no deletion", () => {
    const otherEnvsEntry = flagEntry({ environment_id: id("env", 2) });
    const { snapshot, changed } = replaced([one, two, otherEnvsEntry], [one], following);
    expect(liveFlags(snapshot)).toEqual([id("flag", 1), id("flag", 2)]);
    expect(snapshot.environments.has(id("env", 2))).toBe(true);
    expect(isNothing(changed)).toBe(true);
  });

  it.each([
    ["after a gap", afterGap],
    ["without a gap", following],
  ])("keeps the same entry objects if the read has no newer ones, %s", (_case, rule) => {
    const key = apiKey();
    const held = buildSnapshot(epoch, [one, two, key.entry]);
    const entries = [key.entry, two, one];
    const before = flagsOf(held);
    const { snapshot, changed } = fullRead(held, { epoch, entries }, rule);
    expect(isNothing(changed)).toBe(true);
    for (const [flagId, entry] of before)
      expect(snapshot.environments.get(id("env"))?.flags.get(flagId)).toBe(entry);
  });
});

describe("given a full read with another epoch", () => {
  const held = buildSnapshot(epoch, [one, two]);

  it("replaces the snapshot completely, even with older versions", () => {
    const older = flagEntry({ flag_id: id("flag", 1), version: 1 });
    const read = { epoch: newEpoch, entries: [older] };
    const { snapshot, changed } = fullRead(held, read, following);
    expect(snapshot.epoch).toBe(newEpoch);
    expect(versions(snapshot)).toEqual({ [id("flag", 1)]: 1 });
    expect(changed.environments).toEqual(new Set([id("env")]));
  });

  it("reports no change of an environment that was rewritten unchanged", () => {
    const gone = flagEntry({ environment_id: id("env", 2) });
    const before = buildSnapshot(epoch, [one, two, gone]);
    const { snapshot, changed } = fullRead(
      before,
      { epoch: newEpoch, entries: [two, one] },
      following,
    );
    expect(changed.environments).toEqual(new Set([id("env", 2)]));
    expect(flagsOf(snapshot).map(([, entry]) => entry)).toEqual([two.value, one.value]);
  });

  it("applies an entry with the same version and a different value", () => {
    const other = flagEntry({ flag_id: id("flag", 1), version: 5, enabled: true });
    const { snapshot, changed } = fullRead(
      held,
      { epoch: newEpoch, entries: [other, two] },
      following,
    );
    expect(changed.environments).toEqual(new Set([id("env")]));
    expect(flagsOf(snapshot)).toContainEqual([id("flag", 1), other.value]);
  });

  it("restores a deleted flag that the read contains", () => {
    const before = buildSnapshot(epoch, [deletedFlag(9, id("flag", 1))]);
    const { snapshot } = fullRead(before, { epoch: newEpoch, entries: [one] }, following);
    expect(liveFlags(snapshot)).toEqual([id("flag", 1)]);
  });
});

describe("given no snapshot", () => {
  it("applies the read and reports all of it as changed", () => {
    const read = { epoch, entries: [one] };
    const { snapshot, changed } = fullRead(undefined, read, afterGap);
    expect(liveFlags(snapshot)).toEqual([id("flag", 1)]);
    expect(changed.environments).toEqual(new Set([id("env")]));
  });
});

function flagsOf(snapshot: Snapshot) {
  return [...(snapshot.environments.get(id("env"))?.flags ?? [])];
}

function versions(snapshot: Snapshot) {
  return Object.fromEntries(flagsOf(snapshot).map(([flagId, { version }]) => [flagId, version]));
}

function liveFlags(snapshot: Snapshot) {
  return flagsOf(snapshot)
    .filter(([, flag]) => !isDeleted(flag))
    .map(([flagId]) => flagId)
    .sort();
}
