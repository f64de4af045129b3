import { createHash } from "node:crypto";
import type { FlagEntry, SnapshotEntry } from "@halyard/contracts";
import { createContext, emptyContext } from "@halyard/evaluation";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  type ConfigurationTags,
  configurationStateOf,
  createConfigurationTags,
} from "../../src/answers/configuration-tags.ts";
import { changedFlags, type EnvironmentView } from "../../src/answers/environment-view.ts";
import {
  createEnvironmentViews,
  deriveView,
  type EnvironmentViews,
} from "../../src/answers/environment-views.ts";
import { maxSegmentSize } from "../../src/answers/segments.ts";
import { bulkWriterOf } from "../../src/http/ofrep/bulk-writer.ts";
import { buildSnapshot, type Snapshot, takeEntries } from "../../src/snapshot/snapshot.ts";
import { deletedFlag, flagEntry, id } from "../builders.ts";

/** A snapshot with the views and tags that are derived from it, updated with each change. */
type Derived = { snapshot: Snapshot; views: EnvironmentViews; tags: ConfigurationTags };

const env = id("env");
const context = createContext(
  new Map([
    ["id", "user-7"],
    ["plan", "p3"],
  ]),
);

function follow(entries: SnapshotEntry[]): Derived {
  const snapshot = buildSnapshot(id("epoch"), entries);
  const views = createEnvironmentViews();
  const tags = createConfigurationTags();
  const changed = {
    environments: new Set([env]),
    keys: none,
    organizations: none,
    audiences: none,
  };
  for (const follower of [views.update, tags.follow])
    follower({ snapshot, changed, isReplacement: true, taken: [] });
  views.of(env);
  tags.of(env);
  return { snapshot, views, tags };
}
const none = new Set<string>();

function take({ snapshot, views, tags }: Derived, ...entries: SnapshotEntry[]): EnvironmentView {
  const change = { snapshot, ...takeEntries(snapshot, entries), isReplacement: false };
  views.update(change);
  tags.follow(change);
  return views.of(env);
}

/** Returns everything in responses that depends only on the flags. */
function answersOf(view: EnvironmentView) {
  const values = [emptyContext, context].map((one) => view.valuesFor(one));
  const tags = [emptyContext, context].map((one) => view.tagFor(one));
  expect(tags).toEqual(values.map(({ etag }) => etag));
  const bulk = bulkWriterOf(view.keys);
  const outcomeCodes = view.outcomesFor(context);
  return {
    values: values.map(({ body, etag }) => ({ body, etag })),
    bulkTag: bulk.tag(outcomeCodes, ""),
    bulk: bulk.body(outcomeCodes, ""),
    isCostly: view.isCostly,
  };
}

function expectSameAsRebuilt({ snapshot, views, tags }: Derived): void {
  const environment = snapshot.environments.get(env);
  const view = views.of(env);
  expect(answersOf(view)).toEqual(answersOf(deriveView(environment)));
  expect(tags.of(env).hash).toEqual(configurationStateOf(environment).tag.hash);
  const keys = view.segments.flatMap(({ flags }) => flags.map(({ entry }) => entry.key));
  expect(keys).toEqual([...new Set(keys)].sort());
  for (const key of keys) expect(view.find(key)?.entry).toBe(newestOf(environment, key));
}

function newestOf(environment: ReturnType<Snapshot["environments"]["get"]>, key: string) {
  const flags = [...(environment?.flags.values() ?? [])].filter(
    (flag): flag is FlagEntry => "key" in flag && flag.key === key,
  );
  return flags.sort((one, other) => (one.flag_id < other.flag_id ? 1 : -1))[0];
}

const rule = (plan: string) => [
  { conditions: [{ attribute: "plan", operator: "equals" as const, value: plan }] },
];

/** Returns the key of a flag. Flags with consecutive numbers are not adjacent in key order. */
const keyOf = (number: number) => `area-${(number * 7) % 10}.flag-${number}`;

function flag(number: number, fields: Partial<FlagEntry> = {}): SnapshotEntry {
  return flagEntry({ flag_id: id("flag", number), key: keyOf(number), enabled: true, ...fields });
}

const manyFlags = (count: number) => Array.from({ length: count }, (_, number) => flag(number));

describe("given any sequence of changes", () => {
  const change = fc.record({
    number: fc.integer({ min: 0, max: 40 }),
    /** Selects the key of flags 0 to 7, so that several flags can claim the same key. */
    claims: fc.integer({ min: 0, max: 8 }),
    version: fc.integer({ min: 1, max: 30 }),
    kind: fc.constantFrom("on", "off", "rule", "half", "delete"),
  });
  const turns = fc.array(fc.array(change, { minLength: 1, maxLength: 6 }), { maxLength: 12 });
  const fieldsOf = {
    on: { enabled: true },
    off: { enabled: false },
    rule: { targeting_rules: rule("p3") },
    half: { rollout_percentage: 50 },
  };

  function entryOf({
    number,
    claims,
    version,
    kind,
  }: typeof change extends fc.Arbitrary<infer T> ? T : never) {
    const key = number < 8 ? keyOf(claims) : keyOf(number);
    if (kind === "delete") return deletedFlag(version, id("flag", number));
    return flag(number, { key, version, ...fieldsOf[kind] });
  }

  it.each([
    ["a few flags", 20, 100],
    ["several segments", 2 * maxSegmentSize, 4],
  ])("equals a view derived from scratch, with %s", (_case, count, numRuns) => {
    fc.assert(
      fc.property(turns, (sequence) => {
        const followed = follow(manyFlags(count));
        for (const turn of sequence) take(followed, ...turn.map(entryOf));
        expectSameAsRebuilt(followed);
      }),
      { numRuns },
    );
  });

  it("finds the same differences as a comparison of all flags", () => {
    fc.assert(
      fc.property(turns, (sequence) => {
        const followed = follow(manyFlags(20));
        const before = followed.views.of(env);
        for (const turn of sequence) take(followed, ...turn.map(entryOf));
        const after = followed.views.of(env);
        const found = changedFlags(before, after).map((one) => [one.key, one.before, one.after]);
        expect(found.sort()).toEqual(differencesOf(before, after).sort());
      }),
    );
  });

  function differencesOf(before: EnvironmentView, after: EnvironmentView) {
    const keys = [before, after].flatMap((view) =>
      view.segments.flatMap(({ flags }) => flags.map(({ entry }) => entry.key)),
    );
    return [...new Set(keys)]
      .map((key) => [key, before.find(key), after.find(key)])
      .filter(([, earlier, later]) => earlier !== later);
  }
});

describe("given an environment that grows and shrinks", () => {
  it("equals a view derived from scratch, and leaves no small segments", () => {
    const count = 2 * maxSegmentSize;
    const followed = follow([]);
    const all = manyFlags(count);
    for (let begin = 0; begin < count; begin += 100)
      take(followed, ...all.slice(begin, begin + 100));
    expectSameAsRebuilt(followed);
    const kept = 200;
    for (let begin = 0; begin < count - kept; begin += 100)
      take(
        followed,
        ...Array.from({ length: Math.min(100, count - kept - begin) }, (_, index) =>
          deletedFlag(2, id("flag", begin + index)),
        ),
      );
    expectSameAsRebuilt(followed);
    expect(followed.views.of(env).segments.length).toBeLessThan(4);
    take(followed, ...manyFlags(count).map((_, index) => deletedFlag(3, id("flag", index))));
    expectSameAsRebuilt(followed);
    take(followed, flag(1, { version: 4 }));
    expectSameAsRebuilt(followed);
  });
});

describe("given a change of one flag among many", () => {
  const count = 6_000;
  const changes = {
    "is turned off": { entry: flag(77, { version: 2, enabled: false }), sameKeys: true },
    "gets a rule": {
      entry: flag(77, { version: 2, targeting_rules: rule("p1") }),
      sameKeys: true,
    },
    "is created": { entry: flag(count), sameKeys: false },
    "is deleted": { entry: deletedFlag(2, id("flag", 77)), sameKeys: false },
  };

  it.each(Object.entries(changes))(
    "prepares one flag and one segment when it %s",
    (_name, given) => {
      const followed = follow(manyFlags(count));
      const before = followed.views.of(env);
      const after = take(followed, given.entry);
      const segments = newOnes(before.segments, after.segments);
      const flags = newOnes(
        before.segments.flatMap((segment) => segment.withReplaced),
        after.segments.flatMap((segment) => segment.withReplaced),
      );
      // A full segment is split in two.
      expect(segments.length).toBeLessThanOrEqual(2);
      expect(flags.length).toBeLessThanOrEqual(1);
      expect(after.keys === before.keys).toBe(given.sameKeys);
      expect(after.segments.length).toBeGreaterThan(5);
    },
  );

  function newOnes<T>(before: readonly T[], after: readonly T[]): T[] {
    const known = new Set(before);
    return after.filter((one) => !known.has(one));
  }
});

describe("given the tag of an environment with up to 1,024 flags", () => {
  it.each([1, 100, 1_024])("has a hash of the keys and a bit for each flag (%d flags)", (count) => {
    const followed = follow(manyFlags(count - 1));
    const view = take(followed, flag(count - 1, { enabled: false }));
    const keys = Array.from({ length: count }, (_, number) => keyOf(number)).sort();
    const keysHash = createHash("sha256").update(JSON.stringify(keys)).digest("base64url");
    const bits = Buffer.alloc(Math.ceil(count / 8));
    keys.forEach((key, index) => {
      if (key !== keyOf(count - 1)) bits[index >> 3] = (bits[index >> 3] ?? 0) | (1 << (index & 7));
    });
    const tag = `"${keysHash.slice(0, 22)}.${bits.toString("base64url")}"`;
    expect(view.valuesWithoutContext.etag).toBe(tag);
  });
});
