import { gunzipSync } from "node:zlib";
import type { FlagEntry, SnapshotEntry } from "@halyard/contracts";
import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { createConfigurationTags } from "../../src/answers/configuration-tags.ts";
import { createEnvironmentViews } from "../../src/answers/environment-views.ts";
import { createRulesets, type Rulesets, unusedLifetimeMs } from "../../src/answers/rulesets.ts";
import { maxSegmentBytes, maxSegmentSize } from "../../src/answers/segments.ts";
import {
  buildSnapshot,
  changedBetween,
  type Snapshot,
  takeEntries,
} from "../../src/snapshot/snapshot.ts";
import { flagEntry, id } from "../builders.ts";

/** An environment of several segments. */
const flagCount = 3 * maxSegmentSize;
const key = { organizationId: id("org"), projectId: id("project"), environmentId: id("env") };
let rulesets: Rulesets;
/** Number of flags whose rules were serialized. */
let serialized: number;
let snapshot: Snapshot;
let change: (entry: SnapshotEntry) => void;

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ["setImmediate", "nextTick", "performance"] });
  start(Array.from({ length: flagCount }, (_, number) => watchedFlag(number, 1)));
});
afterEach(() => {
  rulesets.stop();
  jest.useRealTimers();
});

function start(flags: readonly SnapshotEntry[]): void {
  serialized = 0;
  const views = createEnvironmentViews();
  const tags = createConfigurationTags();
  snapshot = buildSnapshot(id("epoch"), flags);
  const whole = {
    ...{ snapshot, isReplacement: true, taken: [] },
    changed: changedBetween(undefined, snapshot),
  };
  views.update(whole);
  tags.follow(whole);
  change = (entry) => {
    const update = { snapshot, isReplacement: false, ...takeEntries(snapshot, [entry]) };
    views.update(update);
    tags.follow(update);
  };
  rulesets = createRulesets({ views, tagOf: tags.of, monotonicMs: () => performance.now() });
}

/** Returns a flag that counts how often its rules are serialized. */
function watchedFlag(
  number: number,
  version: number,
  listBytes = 0,
  fields: Partial<FlagEntry> = {},
): SnapshotEntry {
  const entry = flagEntry({
    flag_id: id("flag", number),
    key: `flag-${String(number).padStart(5, "0")}`,
    version,
    ...fields,
  });
  const rule: FlagEntry["targeting_rules"][number] = {
    conditions: [{ attribute: "id", operator: "in", value: "x".repeat(listBytes) }],
  };
  Object.defineProperty(rule, "toJSON", {
    enumerable: false,
    value: () => {
      serialized += 1;
      return { conditions: [] };
    },
  });
  const value = entry.value as FlagEntry;
  return { ...entry, value: { ...value, targeting_rules: [rule] } } as SnapshotEntry;
}

const versionsIn = (parts: readonly Buffer[]) => {
  const { flags } = JSON.parse(Buffer.concat(parts).toString()) as {
    flags: Record<string, { version: number }>;
  };
  return Object.values(flags).map(({ version }) => version);
};

describe("given an environment whose rule set nobody has requested", () => {
  it("serializes nothing when a flag changes", () => {
    change(watchedFlag(1, 2));
    expect(serialized).toBe(0);
  });
});

describe("given a rule set that was requested", () => {
  it("serializes each flag once for all requests", async () => {
    const [one, other] = await Promise.all([rulesets.of(key), rulesets.of(key)]);
    expect(one).toBe(other);
    expect(serialized).toBe(flagCount);
    expect(versionsIn(one.body.parts)).toHaveLength(flagCount);
    expect(one.body.length).toBe(Buffer.concat(one.body.parts).length);
  });

  it("compresses it once for all requests", async () => {
    const ruleset = await rulesets.of(key);
    const [one, other] = await Promise.all([ruleset.gzip(), ruleset.gzip()]);
    expect(one).toBe(other);
  });

  it("compresses only the changed segment after a change", async () => {
    const before = new Set((await (await rulesets.of(key)).gzip()).parts);
    change(watchedFlag(1, 2));
    const ruleset = await rulesets.of(key);
    const { parts } = await ruleset.gzip();
    const large = parts.filter(({ length }) => length > 1_000);
    expect(large.filter((part) => before.has(part))).toHaveLength(flagCount / maxSegmentSize - 1);
    expect(gunzipSync(Buffer.concat(parts))).toEqual(Buffer.concat(ruleset.body.parts));
  });

  it("serializes only the changed segment after a change", async () => {
    await rulesets.of(key);
    serialized = 0;
    change(watchedFlag(1, 2));
    const { body } = await rulesets.of(key);
    expect(serialized).toBe(maxSegmentSize);
    expect(versionsIn(body.parts).slice(0, 3)).toEqual([1, 2, 1]);
  });

  it("returns the state of the request if a change arrives while it is prepared", async () => {
    const requested = rulesets.of(key);
    change(watchedFlag(flagCount - 1, 2));
    const after = rulesets.of(key);
    const [before, changed] = await Promise.all([requested, after]);
    expect(versionsIn(before.body.parts).at(-1)).toBe(1);
    expect(versionsIn(changed.body.parts).at(-1)).toBe(2);
    expect(before.etag).not.toBe(changed.etag);
  });

  it("drops the bytes when they have not been used for a while", async () => {
    await rulesets.of(key);
    jest.advanceTimersByTime(unusedLifetimeMs - 1);
    await rulesets.of(key);
    jest.advanceTimersByTime(unusedLifetimeMs - 1);
    await rulesets.of(key);
    expect(serialized).toBe(flagCount);
    jest.advanceTimersByTime(unusedLifetimeMs);
    await rulesets.of(key);
    expect(serialized).toBe(2 * flagCount);
  });
});

describe("given flags with large rules", () => {
  /** Four flags fill a segment. */
  const listBytes = Math.floor(maxSegmentBytes / 4.5);
  const count = 100;

  it("serializes as many flags after a change as a segment has bytes for", async () => {
    start(Array.from({ length: count }, (_, number) => watchedFlag(number, 1, listBytes)));
    await rulesets.of(key);
    expect(serialized).toBe(count);
    for (const [version, bytes] of [listBytes, 0, 3 * listBytes].entries()) {
      serialized = 0;
      change(watchedFlag(50, version + 2, bytes));
      const { body } = await rulesets.of(key);
      expect(serialized).toBeLessThanOrEqual(4);
      expect(versionsIn(body.parts)).toHaveLength(count);
    }
  });

  it("counts the values of typed flags among these bytes", async () => {
    const variations = [{ key: "it", json: JSON.stringify("x".repeat(listBytes)) }];
    const typed = { value_type: "string", variations } as const;
    start(Array.from({ length: count }, (_, number) => watchedFlag(number, 1, 0, typed)));
    await rulesets.of(key);
    serialized = 0;
    change(watchedFlag(50, 2, 0, typed));
    await rulesets.of(key);
    expect(serialized).toBeLessThanOrEqual(4);
  });
});
