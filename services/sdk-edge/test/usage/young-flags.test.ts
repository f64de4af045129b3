import { setImmediate as nextTurn } from "node:timers/promises";
import type { SnapshotEntry } from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";
import { createSnapshotHolder } from "../../src/snapshot/snapshot-holder.ts";
import { createYoungFlags, mostYoungFlags } from "../../src/usage/young-flags.ts";
import { deletedFlag, flagEntry, id } from "../builders.ts";
import { flagOf } from "./flags-by-age.ts";

const nine = Date.parse("2027-01-31T09:00:00.000Z");
const minutes = 60 * 1_000;
const hour = 60 * minutes;

/** Young flags by a snapshot that changes entry by entry, as NATS would have it. */
function given(entries: readonly SnapshotEntry[]) {
  const holder = createSnapshotHolder({ now: () => nine, pace: { restMs: () => 0 } });
  let looksThroughAll = 0;
  const young = createYoungFlags({
    flagsOf(environmentId) {
      looksThroughAll += 1;
      return holder.snapshot?.environments.get(environmentId);
    },
  });
  young.enter(nine);
  holder.subscribe(young.follow);
  holder.replace(id("epoch"), entries);
  return {
    young,
    ids: () => young.of(id("env")),
    looksThroughAll: () => looksThroughAll,
    replace: (...now: SnapshotEntry[]) => holder.replace(id("epoch"), now),
    async feed(...fed: SnapshotEntry[]) {
      for (const entry of fed) holder.apply(entry);
      await nextTurn();
    },
  };
}

const old = flagOf(nine - 1);
const one = flagOf(nine + 1 * minutes);
const two = flagOf(nine + 2 * minutes);
const three = flagOf(nine + 3 * minutes);

describe("given flags of an environment", () => {
  it("finds those that were created in the hour, oldest first, and not those that are deleted", () => {
    const { ids } = given([three.entry, old.entry, deletedFlag(2, two.id), one.entry]);
    expect(ids()).toEqual([one.id, three.id]);
  });

  it("follows what is created, changed and deleted, and looks through all of them only once", async () => {
    const { ids, feed, looksThroughAll } = given([old.entry, one.entry]);
    expect(ids()).toEqual([one.id]);
    const changed = flagEntry({ flag_id: one.id, version: 2 });
    await feed(three.entry, two.entry, changed, flagOf(nine - 2).entry);
    expect(ids()).toEqual([one.id, two.id, three.id]);
    await feed(deletedFlag(2, two.id));
    await feed(deletedFlag(2, old.id));
    expect(ids()).toEqual([one.id, three.id]);
    expect(looksThroughAll()).toBe(1);
  });

  it("leaves a list that somebody holds as it was", async () => {
    const { ids, feed } = given([one.entry]);
    const held = ids();
    await feed(two.entry, deletedFlag(2, one.id));
    expect(held).toEqual([one.id]);
  });

  it("finds them anew when the environment was read anew", () => {
    const { ids, replace } = given([one.entry]);
    expect(ids()).toEqual([one.id]);
    replace(one.entry, two.entry);
    expect(ids()).toEqual([one.id, two.id]);
  });

  it("finds them anew in another hour", () => {
    const { ids, young } = given([one.entry, flagOf(nine + hour).entry]);
    expect(ids()).toHaveLength(2);
    young.enter(nine + hour);
    expect(ids()).toEqual([flagOf(nine + hour).id]);
  });

  it("knows none of an environment that nobody has heard of, until it has one", async () => {
    const { ids, feed } = given([]);
    expect(ids()).toEqual([]);
    await feed(one.entry);
    expect(ids()).toEqual([one.id]);
  });
});

describe("given more young flags than count by themselves", () => {
  const many = Array.from({ length: 3 * mostYoungFlags }, (_, number) => flagOf(nine + number));
  const firstIds = many.slice(0, mostYoungFlags).map((flag) => flag.id);
  const entries = many.map(({ entry }) => entry);

  it.each([
    ["in the order of their creation", entries],
    ["in the opposite order", entries.toReversed()],
  ])("names those that were created first, read %s", (_name, read) => {
    expect(given(read).ids()).toEqual(firstIds);
  });

  it("names no more when they come one after the other", async () => {
    const { ids, feed } = given(entries.slice(0, mostYoungFlags - 1));
    expect(ids()).toHaveLength(mostYoungFlags - 1);
    await feed(...entries.slice(mostYoungFlags - 1));
    expect(ids()).toEqual(firstIds);
  });

  it("gives a place that has become free to the next that is created", async () => {
    const { ids, feed } = given(entries.slice(0, mostYoungFlags));
    expect(ids()).toHaveLength(mostYoungFlags);
    await feed(deletedFlag(2, firstIds[0]));
    expect(ids()).toHaveLength(mostYoungFlags - 1);
    await feed(three.entry);
    expect(ids().at(-1)).toBe(three.id);
  });
});
