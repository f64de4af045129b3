import { setImmediate as nextTurn } from "node:timers/promises";
import type { SnapshotEntry } from "@halyard/contracts";
import { beforeEach, describe, expect, it } from "@jest/globals";
import {
  type ConfigurationTags,
  configurationStateOf,
  createConfigurationTags,
} from "../../src/answers/configuration-tags.ts";
import { createSnapshotHolder, type SnapshotHolder } from "../../src/snapshot/snapshot-holder.ts";
import { deletedFlag, flagEntry, id } from "../builders.ts";

/** Two edges: one applies each change separately, the other applies several changes in one batch. */
type Edge = { holder: SnapshotHolder; tags: ConfigurationTags };
let oneByOne: Edge;
let together: Edge;

function edge(): Edge {
  const holder = createSnapshotHolder({ now: () => 0, pace: { pauseMs: () => 0 } });
  const tags = createConfigurationTags();
  holder.onUpdate(tags.follow);
  holder.replace(id("epoch"), [flag(1, 1), flag(2, 1)]);
  return { holder, tags };
}
const flag = (number: number, version: number) =>
  flagEntry({ flag_id: id("flag", number), key: `flag-${number}`, version });
const tagAt = ({ holder }: Edge) =>
  configurationStateOf(holder.snapshot?.environments.get(id("env"))).tag;
const includes = ({ tags }: Edge, tag: ReturnType<typeof tagAt>) => tags.includes(id("env"), tag);

async function take({ holder }: Edge, ...entries: SnapshotEntry[]): Promise<void> {
  for (const entry of entries) holder.apply(entry);
  await nextTurn();
}

beforeEach(() => {
  oneByOne = edge();
  together = edge();
});

describe("given several quick changes", () => {
  const changes = [
    flag(1, 2),
    flag(2, 2),
    flag(3, 1),
    flag(1, 3),
    deletedFlag(3, id("flag", 2)),
    flag(3, 2),
  ];

  it("includes every past state and no future state", async () => {
    const tags = [tagAt(oneByOne)];
    for (const change of changes) {
      await take(oneByOne, change);
      expect(includes(together, tagAt(oneByOne))).toBe(false);
      tags.push(tagAt(oneByOne));
    }
    for (const tag of tags) expect(includes(oneByOne, tag)).toBe(true);
  });

  it("includes the intermediate states of changes that it applied in one batch", async () => {
    const tags = [tagAt(oneByOne)];
    for (const change of changes) {
      await take(oneByOne, change);
      tags.push(tagAt(oneByOne));
    }
    await take(together, ...changes);
    expect(tagAt(together)).toEqual(tagAt(oneByOne));
    for (const tag of tags) expect(includes(together, tag)).toBe(true);
  });

  it("names the flags that changed since each past state", async () => {
    const seen: [ReturnType<typeof tagAt>, string[]][] = [[tagAt(oneByOne), []]];
    for (const change of changes) {
      await take(oneByOne, change);
      const key = "key" in change.value ? change.value.key : "flag-2";
      for (const [, keys] of seen) keys.push(key);
      seen.push([tagAt(oneByOne), []]);
    }
    for (const [tag, keys] of seen)
      expect(oneByOne.tags.changedSince(id("env"), tag)?.flags).toEqual(new Set(keys));
  });

  it("names no flags for an unknown state", async () => {
    const before = tagAt(oneByOne);
    await take(oneByOne, flag(1, 2));
    expect(together.tags.changedSince(id("env"), tagAt(oneByOne))).toBeUndefined();
    expect(together.tags.changedSince(id("env"), before)?.flags).toEqual(new Set());
  });

  it("removes old states", async () => {
    const first = tagAt(oneByOne);
    for (let version = 2; version < 30; version += 1) await take(oneByOne, flag(1, version));
    expect(includes(oneByOne, first)).toBe(false);
  });

  it("does not include states of other environments", async () => {
    const first = tagAt(oneByOne);
    await take(oneByOne, flag(1, 2));
    expect(oneByOne.tags.includes(id("env", 2), first)).toBe(false);
  });

  it("discards all past states after a full read", async () => {
    const first = tagAt(oneByOne);
    await take(oneByOne, flag(1, 2));
    oneByOne.holder.replace(id("epoch", 2), [flag(1, 1)]);
    expect(includes(oneByOne, first)).toBe(false);
    expect(includes(oneByOne, tagAt(oneByOne))).toBe(true);
  });
});
