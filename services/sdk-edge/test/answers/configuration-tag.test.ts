import type { SnapshotEntry } from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";
import {
  configurationStateOf,
  mayBeNewer,
  parseConfigurationTag,
} from "../../src/answers/configuration-tags.ts";
import { buildSnapshot } from "../../src/snapshot/snapshot.ts";
import { at, deletedFlag, flagEntry, id } from "../builders.ts";

const one = flagEntry({ flag_id: id("flag", 1), version: 3 });
const two = flagEntry({ flag_id: id("flag", 2), version: 5 });
const tagOf = (...entries: SnapshotEntry[]) =>
  configurationStateOf(buildSnapshot(id("epoch"), entries).environments.get(id("env"))).tag;

describe("given the flags of an environment", () => {
  it("has the same tag for the same flags, regardless of their order of arrival", () => {
    expect(tagOf(one, two)).toEqual(tagOf(two, one));
  });

  it("contains the time of the newest change", () => {
    expect(tagOf(one, two).newestMs).toBe(Date.parse(at(5)));
    expect(tagOf(one, deletedFlag(9, id("flag", 2))).newestMs).toBe(Date.parse(at(9)));
  });

  it("has a different tag for another version, an additional flag and a deleted flag", () => {
    const tags = [
      tagOf(one, two),
      tagOf(one),
      tagOf(),
      tagOf(one, flagEntry({ flag_id: id("flag", 2), version: 6 })),
      tagOf(one, deletedFlag(6, id("flag", 2))),
    ];
    expect(new Set(tags.map(({ text }) => text)).size).toBe(tags.length);
  });

  it("has the same hash after a tombstone is removed", () => {
    expect(tagOf(one, deletedFlag(9, id("flag", 2))).hash).toBe(tagOf(one).hash);
  });

  it("has a tag for an unknown environment", () => {
    expect(configurationStateOf(undefined).tag).toEqual(tagOf());
  });
});

describe("given a tag that a client sends back", () => {
  const older = tagOf(one);
  const newer = tagOf(one, two);

  it("parses to the original tag", () => {
    expect(parseConfigurationTag(newer.text)).toEqual(newer);
  });

  const soon = Date.parse(at(60));
  const isNewer = (theirs: typeof older, present: typeof older, nowMs = soon) =>
    mayBeNewer(theirs, { present, nowMs });
  const changedAt = (number: number, ms: number) =>
    flagEntry({
      flag_id: id("flag", number),
      version: 2,
      committed_at: new Date(Date.parse(at(3)) + ms).toISOString(),
    });

  it("is newer only for an edge that has not received the change", () => {
    expect(isNewer(newer, older)).toBe(true);
    expect(isNewer(newer, newer)).toBe(false);
    expect(isNewer(older, newer)).toBe(false);
  });

  it("is newer if two flags changed in the same millisecond", () => {
    const here = tagOf(changedAt(1, 0));
    const there = tagOf(changedAt(1, 0), changedAt(2, 0));
    expect(there.newestMs).toBe(here.newestMs);
    expect(isNewer(there, here)).toBe(true);
  });

  it("is newer if the later change was committed by a slow clock", () => {
    const here = tagOf(changedAt(1, 100));
    const there = tagOf(changedAt(1, 100), changedAt(2, 0));
    expect(isNewer(there, here)).toBe(true);
    const muchLater = tagOf(changedAt(1, 5_000));
    expect(isNewer(there, muchLater)).toBe(false);
  });

  it("is not newer if only a tombstone was removed", () => {
    expect(isNewer(tagOf(one, deletedFlag(9, id("flag", 2))), tagOf(one))).toBe(false);
  });

  it("is not newer if it is dated in the future, beyond the tolerated clock skew", () => {
    expect(isNewer(newer, older, newer.newestMs - 4_000)).toBe(true);
    expect(isNewer(newer, older, newer.newestMs - 6_000)).toBe(false);
  });

  it.each(["", "-", "abc", '"k3-x"', `${"z".repeat(10)}-${"A".repeat(22)}`, "__proto__"])(
    "is undefined if it is invalid (%j)",
    (text) => {
      expect(parseConfigurationTag(text)).toBeUndefined();
    },
  );
});
