import type { SnapshotEntry } from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";
import {
  configurationStateOf,
  mayBeNewer,
  parseConfigurationTag,
} from "../../src/environment/configuration-tag.ts";
import { buildSnapshot } from "../../src/snapshot/take-entries.ts";
import { at, deletedFlag, flagEntry, id } from "../builders.ts";

const one = flagEntry({ flag_id: id("flag", 1), version: 3 });
const two = flagEntry({ flag_id: id("flag", 2), version: 5 });
const tagOf = (...entries: SnapshotEntry[]) =>
  configurationStateOf(buildSnapshot(id("epoch"), entries).environments.get(id("env"))).tag;

describe("given the flags of an environment", () => {
  it("has the same tag for the same flags, in whatever order they came", () => {
    expect(tagOf(one, two)).toEqual(tagOf(two, one));
  });

  it("tells the time of the newest change", () => {
    expect(tagOf(one, two).newestMs).toBe(Date.parse(at(5)));
    expect(tagOf(one, deletedFlag(9, id("flag", 2))).newestMs).toBe(Date.parse(at(9)));
  });

  it("has another tag for another version, one flag more and one flag less", () => {
    const tags = [
      tagOf(one, two),
      tagOf(one),
      tagOf(),
      tagOf(one, flagEntry({ flag_id: id("flag", 2), version: 6 })),
      tagOf(one, deletedFlag(6, id("flag", 2))),
    ];
    expect(new Set(tags.map(({ text }) => text)).size).toBe(tags.length);
  });

  it("names the same state when a deletion is forgotten", () => {
    expect(tagOf(one, deletedFlag(9, id("flag", 2))).hash).toBe(tagOf(one).hash);
  });

  it("has one for an environment that is not known", () => {
    expect(configurationStateOf(undefined).tag).toEqual(tagOf());
  });
});

describe("given the tag that a caller was told", () => {
  const older = tagOf(one);
  const newer = tagOf(one, two);

  it("is what it was when it comes back", () => {
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

  it("is news to an edge that has not heard of the change, and to no other", () => {
    expect(isNewer(newer, older)).toBe(true);
    expect(isNewer(newer, newer)).toBe(false);
    expect(isNewer(older, newer)).toBe(false);
  });

  it("is news where two flags changed in the same millisecond", () => {
    const here = tagOf(changedAt(1, 0));
    const there = tagOf(changedAt(1, 0), changedAt(2, 0));
    expect(there.newestMs).toBe(here.newestMs);
    expect(isNewer(there, here)).toBe(true);
  });

  it("is news where the later change was committed by a clock that is behind", () => {
    const here = tagOf(changedAt(1, 100));
    const there = tagOf(changedAt(1, 100), changedAt(2, 0));
    expect(isNewer(there, here)).toBe(true);
    const muchLater = tagOf(changedAt(1, 5_000));
    expect(isNewer(there, muchLater)).toBe(false);
  });

  it("is no news where only a deletion was forgotten", () => {
    expect(isNewer(tagOf(one, deletedFlag(9, id("flag", 2))), tagOf(one))).toBe(false);
  });

  it("is no news when it is dated in the future, but for clocks that differ a little", () => {
    expect(isNewer(newer, older, newer.newestMs - 4_000)).toBe(true);
    expect(isNewer(newer, older, newer.newestMs - 6_000)).toBe(false);
  });

  it.each(["", "-", "abc", '"k3-x"', `${"z".repeat(10)}-${"A".repeat(22)}`, "__proto__"])(
    "is none if it was not made here (%j)",
    (text) => {
      expect(parseConfigurationTag(text)).toBeUndefined();
    },
  );
});
