import type { FlagEntry, SnapshotEntry, TargetingRule } from "@halyard/contracts";
import { createContext } from "@halyard/evaluation";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { changedRules } from "../../src/answers/changed-rules.ts";
import {
  type ConfigurationTags,
  createConfigurationTags,
} from "../../src/answers/configuration-tags.ts";
import type { EnvironmentView } from "../../src/answers/environment-view.ts";
import {
  createEnvironmentViews,
  type EnvironmentViews,
  type ViewChange,
} from "../../src/answers/environment-views.ts";
import { maxWaitMs } from "../../src/answers/link-state.ts";
import {
  buildSnapshot,
  changedBetween,
  type Snapshot,
  takeEntries,
} from "../../src/snapshot/snapshot.ts";
import {
  audienceEntry,
  deletedAudience,
  deletedChunk,
  deletedFlag,
  flagEntry,
  id,
  listedAudience,
} from "../builders.ts";

/** The views and tags of a snapshot, with a clock that the test sets. */
type Derived = {
  snapshot: Snapshot;
  views: EnvironmentViews;
  tags: ConfigurationTags;
  clock: { ms: number };
  lastChanges: readonly ViewChange[];
};

const env = id("env");

function follow(...entries: SnapshotEntry[]): Derived {
  const clock = { ms: 0 };
  const views = createEnvironmentViews(() => clock.ms);
  const tags = createConfigurationTags(views.of);
  const derived = { snapshot: buildSnapshot(id("epoch"), []), views, tags, clock, lastChanges: [] };
  replace(derived, entries);
  return derived;
}

/** Replaces the snapshot, as a full read does. */
function replace(derived: Derived, entries: readonly SnapshotEntry[]): void {
  const snapshot = buildSnapshot(id("epoch"), entries);
  const changed = changedBetween(derived.snapshot, snapshot);
  const update = { snapshot, changed, isReplacement: true, taken: [] };
  derived.snapshot = snapshot;
  derived.tags.follow(update, derived.views.update(update));
  derived.views.of(env);
  derived.tags.of(env);
}

function take(derived: Derived, ...entries: SnapshotEntry[]): EnvironmentView {
  const { snapshot, views, tags } = derived;
  const update = { snapshot, isReplacement: false, ...takeEntries(snapshot, entries) };
  derived.lastChanges = views.update(update);
  tags.follow(update, derived.lastChanges);
  return views.of(env);
}

function passTime(derived: Derived, ms: number): void {
  derived.clock.ms += ms;
  derived.lastChanges = derived.views.giveUp();
  derived.tags.viewsChanged(derived.lastChanges);
}

const flag = (number: number, fields: Partial<FlagEntry> = {}): SnapshotEntry =>
  flagEntry({ flag_id: id("flag", number), key: `flag-${number}`, enabled: true, ...fields });
const inAudience = (audience: string): TargetingRule[] => [{ conditions: [{ audience }] }];
const requires = (flag: string, is: "on" | "off" = "on") => ({ requires: [{ flag, is }] });
const matching = (plan: string) => [
  [{ attribute: "plan", operator: "equals" as const, value: plan }],
];

const proUser = createContext(
  new Map([
    ["id", "u1"],
    ["plan", "pro"],
  ]),
);

/** Returns the values of the flags that are found. */
function valuesIn({ views }: Derived): Record<string, boolean> {
  return JSON.parse(views.of(env).valuesFor(proUser).body).flags;
}

const keysOf = (view: EnvironmentView) =>
  view.segments.flatMap(({ flags }) => flags.map(({ entry }) => entry.key));

describe("given flags that use an audience", () => {
  const used = flag(1, { targeting_rules: inAudience("beta") });
  const dependent = flag(2, requires("flag-1"));
  const plain = flag(3);
  const audience = audienceEntry({ match: matching("pro") });

  it("evaluates them with the audience, and what requires them", () => {
    const derived = follow(used, dependent, plain, audience);
    expect(valuesIn(derived)).toEqual({ "flag-1": true, "flag-2": true, "flag-3": true });
  });

  it("prepares exactly these and their dependents again when the audience changes", () => {
    const derived = follow(used, dependent, plain, audience);
    const before = derived.views.of(env);
    const after = take(derived, audienceEntry({ match: matching("free"), version: 2 }));
    expect(valuesIn(derived)).toEqual({ "flag-1": false, "flag-2": false, "flag-3": true });
    for (const [key, isSame] of [
      ["flag-1", false],
      ["flag-2", false],
      ["flag-3", true],
    ] as const)
      expect(after.find(key) === before.find(key)).toBe(isSame);
  });

  it("keeps the view if an audience of another key or of no flag changes", () => {
    const derived = follow(used, dependent, plain, audience);
    const before = derived.views.of(env);
    const other = audienceEntry({ key: "other", audience_id: id("audience", 2) });
    expect(take(derived, other)).toBe(before);
    expect(derived.lastChanges).toEqual([]);
  });

  it.each([
    ["needs", { needs: ["moon"] }],
    ["operator", { match: [[{ attribute: "id", operator: "orbits" as "in", value: "x" }]] }],
  ])("does not find them if the audience has an unknown %s", (_what, fields) => {
    expect(valuesIn(follow(used, plain, audienceEntry(fields)))).toEqual({ "flag-3": true });
  });

  it("names only what a client lacks: the audience, and flags whose needs changed", () => {
    const derived = follow(used, dependent, plain, audience);
    const before = derived.views.of(env);
    const after = take(derived, audienceEntry({ match: matching("free"), version: 2 }));
    expect(changedRules(before, after)).toEqual({ flags: [], audiences: ["beta"] });
    const exact = { ...(matching("free")[0]?.[0] as object), match_case: true } as never;
    const withCase = take(derived, audienceEntry({ match: [[exact]], version: 3 }));
    expect(changedRules(after, withCase)).toEqual({ flags: ["flag-1"], audiences: ["beta"] });
    const unused = take(derived, flag(1, { version: 2 }));
    expect(changedRules(withCase, unused)).toEqual({ flags: ["flag-1"], audiences: ["beta"] });
    expect(unused.links.audiences.size).toBe(0);
  });

  it("has another tag after each change, and knows what changed since each", () => {
    const derived = follow(used, dependent, plain, audience);
    const first = derived.tags.of(env);
    take(derived, audienceEntry({ match: matching("free"), version: 2 }));
    const second = derived.tags.of(env);
    expect(second.hash).not.toBe(first.hash);
    expect(second.newestMs).toBeGreaterThan(first.newestMs);
    expect(derived.tags.changedSince(env, first)).toEqual({
      ...{ flags: new Set(), audiences: new Set(["beta"]) },
    });
    take(derived, audienceEntry({ key: "unused", audience_id: id("audience", 2) }));
    expect(derived.tags.of(env).text).toBe(second.text);
  });
});

describe("given a flag that requires another one", () => {
  it("follows a change of the required flag in the same view", () => {
    const derived = follow(flag(1), flag(2, requires("flag-1")), flag(3, requires("flag-2")));
    expect(valuesIn(derived)).toEqual({ "flag-1": true, "flag-2": true, "flag-3": true });
    take(derived, flag(1, { enabled: false, version: 2 }));
    expect(valuesIn(derived)).toEqual({ "flag-1": false, "flag-2": false, "flag-3": false });
  });

  it.each(["on", "off"] as const)("is not found while that one is unknown (is: %s)", (is) => {
    const derived = follow(flag(2, requires("flag-1", is)), flag(3, requires("flag-2")));
    expect(valuesIn(derived)).toEqual({});
    take(derived, flag(1, { enabled: is === "on" }));
    expect(valuesIn(derived)).toMatchObject({ "flag-2": true, "flag-3": true });
    take(derived, deletedFlag(2, id("flag", 1)));
    expect(valuesIn(derived)).toEqual({});
  });

  it("is found without it while it is disabled", () => {
    expect(valuesIn(follow(flag(2, { ...requires("flag-1"), enabled: false })))).toEqual({
      "flag-2": false,
    });
  });

  it("does not find the flags of a circle and their dependents, until the circle is gone", () => {
    const derived = follow(
      flag(1, requires("flag-2")),
      flag(2, requires("flag-1")),
      flag(3, requires("flag-2", "off")),
      flag(4),
    );
    expect(valuesIn(derived)).toEqual({ "flag-4": true });
    take(derived, flag(1, { version: 2 }));
    expect(valuesIn(derived)).toEqual({
      ...{ "flag-1": true, "flag-2": true, "flag-3": false, "flag-4": true },
    });
  });
});

describe("given an audience with a list", () => {
  const used = flag(1, { targeting_rules: inAudience("beta") });
  const listed = listedAudience(["u1", "u2"], { bits: 1 });
  const others = Array.from({ length: 9 }, (_, number) => `u${number + 2}`);
  const changedList = listedAudience(others, { bits: 1, version: 2 });

  it("finds users in the list by their fingerprints", () => {
    const derived = follow(used, ...listed.chunks, listed.audience);
    expect(valuesIn(derived)).toEqual({ "flag-1": true });
    take(derived, ...changedList.chunks, changedList.audience);
    expect(valuesIn(derived)).toEqual({ "flag-1": false });
  });

  it("keeps the flag's previous state while a chunk is missing, and switches when it arrives", () => {
    const derived = follow(used, ...listed.chunks, listed.audience);
    const [first, second] = changedList.chunks as [SnapshotEntry, SnapshotEntry];
    const tag = derived.tags.of(env);
    take(derived, changedList.audience, first);
    expect(valuesIn(derived)).toEqual({ "flag-1": true });
    expect(derived.views.waitsUntilMs).toBe(maxWaitMs);
    expect(derived.tags.of(env).hash).not.toBe(tag.hash);
    const waiting = derived.tags.of(env);
    take(derived, second);
    expect(valuesIn(derived)).toEqual({ "flag-1": false });
    expect(derived.views.waitsUntilMs).toBeUndefined();
    expect(derived.tags.of(env).hash).not.toBe(waiting.hash);
  });

  it("keeps serving the chunks of the state that the flag keeps", () => {
    const derived = follow(used, ...listed.chunks, listed.audience);
    const [chunk] = listed.chunks as [(typeof listed.chunks)[number]];
    take(derived, changedList.audience, deletedChunk(chunk, 2));
    expect(derived.views.of(env).links.chunk(chunk.address.sha256)).toBeDefined();
    passTime(derived, maxWaitMs);
    expect(derived.views.of(env).links.chunk(chunk.address.sha256)).toBeUndefined();
  });

  it("gives the flag up after 30 s, also if it changes meanwhile, until everything has arrived", () => {
    const derived = follow(used, flag(2, requires("flag-1")), ...listed.chunks, listed.audience);
    take(derived, changedList.audience);
    passTime(derived, maxWaitMs - 1);
    take(derived, flag(1, { targeting_rules: inAudience("beta"), version: 2 }));
    expect(valuesIn(derived)).toEqual({ "flag-1": true, "flag-2": true });
    expect(derived.lastChanges.length).toBe(1);
    passTime(derived, 1);
    expect(valuesIn(derived)).toEqual({});
    expect(derived.lastChanges.length).toBe(1);
    expect(derived.views.waitsUntilMs).toBeUndefined();
    take(derived, ...changedList.chunks);
    expect(valuesIn(derived)).toEqual({ "flag-1": false, "flag-2": false });
  });

  it("keeps the previous state of a flag that now requires a flag which waits", () => {
    const derived = follow(flag(2), flag(1));
    take(derived, flag(1, { targeting_rules: inAudience("beta"), version: 2 }));
    take(derived, flag(3, { targeting_rules: inAudience("beta") }));
    take(derived, flag(2, { ...requires("flag-3"), version: 2 }));
    expect(valuesIn(derived)).toEqual({ "flag-1": true, "flag-2": true });
    take(derived, ...listed.chunks, listed.audience);
    expect(valuesIn(derived)).toEqual({ "flag-1": true, "flag-2": true, "flag-3": true });
  });

  it("follows the required flags of the state that a flag keeps", () => {
    const late = { targeting_rules: inAudience("late"), version: 2 };
    const derived = follow(flag(2, requires("flag-1")), flag(1), flag(3, requires("flag-2")));
    // The new state does not require the flag any longer, but it is not complete.
    take(derived, flag(2, late));
    take(derived, flag(1, { enabled: false, version: 2 }));
    expect(valuesIn(derived)).toEqual({ "flag-1": false, "flag-2": false, "flag-3": false });
    take(derived, flag(1, { version: 3 }));
    expect(valuesIn(derived)).toEqual({ "flag-1": true, "flag-2": true, "flag-3": true });
    take(derived, deletedFlag(4, id("flag", 1)));
    expect(valuesIn(derived)).not.toHaveProperty("flag-2");
    take(derived, audienceEntry({ key: "late", match: matching("pro") }));
    expect(valuesIn(derived)).toEqual({ "flag-2": true, "flag-3": true });
  });

  it("follows a required flag that is turned off together with the change that waits", () => {
    const first = flag(2, { targeting_rules: inAudience("beta"), ...requires("flag-1") });
    const root = (version: number, enabled: boolean) =>
      flag(1, { version, enabled, ...requires("flag-3") });
    const derived = follow(first, root(1, true), flag(3), ...listed.chunks, listed.audience);
    take(derived, flag(2, { targeting_rules: inAudience("late"), version: 2 }), root(2, false));
    expect(valuesIn(derived)).toMatchObject({ "flag-1": false, "flag-2": false });
    take(derived, root(3, true), changedList.audience);
    expect(valuesIn(derived)).toMatchObject({ "flag-1": true, "flag-2": true });
    take(derived, flag(3, { enabled: false, version: 2 }));
    expect(valuesIn(derived)).toMatchObject({ "flag-1": false, "flag-2": false });
  });

  it("waits for nothing while the flag is disabled", () => {
    const derived = follow(flag(1, { targeting_rules: inAudience("beta"), enabled: false }));
    expect(valuesIn(derived)).toEqual({ "flag-1": false });
    take(derived, listed.audience);
    expect(derived.views.waitsUntilMs).toBeUndefined();
  });

  it("keeps the previous state during a full read too", () => {
    const derived = follow(used, ...listed.chunks, listed.audience);
    replace(derived, [used, changedList.audience]);
    expect(valuesIn(derived)).toEqual({ "flag-1": true });
    passTime(derived, maxWaitMs);
    expect(valuesIn(derived)).toEqual({});
  });

  it("names the newest audience of a key while a flag keeps a deleted one", () => {
    const gamma = id("audience", 3);
    const both = [{ conditions: [{ audience: "beta" }, { audience: "gamma" }] }];
    const derived = follow(
      flag(1, { targeting_rules: both }),
      flag(2, { targeting_rules: inAudience("beta") }),
      audienceEntry({ version: 5, match: matching("pro") }),
      audienceEntry({ audience_id: gamma, key: "gamma", match: matching("pro") }),
    );
    const again = { audience_id: id("audience", 2), version: 1 };
    take(derived, deletedAudience(2, gamma), deletedAudience(6), audienceEntry(again));
    expect(valuesIn(derived)).toEqual({ "flag-1": true, "flag-2": false });
    expect(derived.views.of(env).links.audiences.get("beta")?.entry).toMatchObject(again);
  });

  it("decides in linear time for thousands of flags that require a flag which waits", () => {
    const dependents = Array.from({ length: 8_000 }, (_, at) => flag(at + 2, requires("flag-1")));
    const derived = follow(used, ...dependents, listed.audience);
    passTime(derived, maxWaitMs + 1);
    const started = process.cpuUsage();
    take(derived, changedList.audience);
    const { user, system } = process.cpuUsage(started);
    // It takes seconds if each of them searches all flags that wait.
    expect((user + system) / 1_000).toBeLessThan(1_000);
  });

  it.each([
    ["has a part of a fingerprint", "AAAA"],
    ["does not have the SHA-256 of its entry", Buffer.alloc(8).toString("base64")],
  ])("counts a chunk that %s as missing", (_, data) => {
    const [chunk, other] = listed.chunks as [SnapshotEntry, SnapshotEntry];
    const damaged = { ...chunk, value: { ...chunk.value, data } } as SnapshotEntry;
    expect(valuesIn(follow(used, damaged, other, listed.audience))).toEqual({});
  });
});

describe("given a chain of 3,000 flags in a damaged snapshot, each of which requires the next one", () => {
  const first = { targeting_rules: [{ conditions: matching("pro").flat() }] };
  const chain = Array.from({ length: 3_000 }, (_, index) =>
    flag(index, index === 0 ? first : { requires: [{ flag: `flag-${index - 1}`, is: "on" }] }),
  );

  it("finds the flags up to a depth of 64", () => {
    const found = Object.keys(valuesIn(follow(...chain)));
    expect(found).toHaveLength(65);
    expect(found).toContain("flag-64");
    expect(Object.keys(valuesIn(follow(...chain.toReversed())))).toHaveLength(65);
  });
});

describe("given an audience that is costly to evaluate", () => {
  const costly = (patterns: number) =>
    audienceEntry({
      match: Array.from({ length: patterns }, (_, at) => [
        { attribute: "email", operator: "matches_regex" as const, value: `^user-${at}@` },
      ]),
    });
  const users = (count: number) =>
    Array.from({ length: count }, (_, at) => flag(at + 1, { targeting_rules: inAudience("beta") }));

  it.each([
    { patterns: 11, flags: 1, isCostly: true },
    { patterns: 9, flags: 1, isCostly: false },
    { patterns: 9, flags: 50, isCostly: false },
  ])("counts it once for $flags flags ($patterns patterns)", ({ patterns, flags, isCostly }) => {
    expect(follow(...users(flags), costly(patterns)).views.of(env).isCostly).toBe(isCostly);
  });

  it("evaluates it once for all flags in steps", () => {
    const stepsOf = (flags: number) => {
      const view = follow(...users(flags), costly(11)).views.of(env);
      return [...view.evaluateInSteps(proUser)].length;
    };
    expect(stepsOf(50) - stepsOf(1)).toBe(49);
  });

  it("counts a required flag again for each dependent", () => {
    const condition = { attribute: "email", operator: "matches_regex" as const, value: "^a" };
    const required = flag(1, { targeting_rules: Array(6).fill({ conditions: [condition] }) });
    expect(follow(required).views.of(env).isCostly).toBe(false);
    expect(follow(required, flag(2, requires("flag-1"))).views.of(env).isCostly).toBe(true);
  });
});

describe("given any entries", () => {
  const keys = ["flag-1", "flag-2", "flag-3", "flag-4"];
  // Chunks of a later version than each audience, so that any later entry of an audience can name them.
  const lists = [[], ["u1"], ["u2"]].map((users) => listedAudience(users, { version: 51 }));
  const references = fc.record({
    enabled: fc.boolean(),
    targeting_rules: fc.oneof(
      fc.constant<TargetingRule[]>([]),
      fc.constantFrom(...["beta", "gamma"].map(inAudience)),
      fc
        .constantFrom(...keys)
        .map((key): TargetingRule[] => [{ conditions: [{ flag: key, is: "off" }] }]),
    ),
    requires: fc.option(
      fc.constantFrom(...keys).map((key) => [{ flag: key, is: "on" as const }]),
      { nil: undefined },
    ),
  });
  const versions = fc.integer({ min: 1, max: 50 });
  const entry: fc.Arbitrary<SnapshotEntry> = fc.oneof(
    fc
      .record({ number: fc.integer({ min: 1, max: 4 }), version: versions, state: references })
      .map(({ number, version, state: { requires, ...state } }) =>
        flag(number, { version, ...state, ...(requires === undefined ? {} : { requires }) }),
      ),
    fc
      .record({ number: fc.integer({ min: 1, max: 4 }), version: versions })
      .map(({ number, version }) => deletedFlag(version, id("flag", number))),
    fc
      .record({
        ...{ version: versions, list: fc.constantFrom(undefined, ...lists) },
        audience: fc.constantFrom("beta", "gamma"),
        plan: fc.constantFrom("pro", "free"),
      })
      .map(({ version, list, audience, plan }) => {
        const audienceId = id("audience", audience === "beta" ? 1 : 2);
        const value = list?.audience.value;
        return audienceEntry({
          ...{ key: audience, audience_id: audienceId, version, match: matching(plan) },
          ...(value !== undefined && "list" in value ? { list: value.list } : {}),
        });
      }),
    fc
      .record({ version: versions, number: fc.integer({ min: 1, max: 2 }) })
      .map(({ version, number }) => deletedAudience(version, id("audience", number))),
    fc.constantFrom(...lists.flatMap(({ chunks }) => chunks)),
  );
  // Versions are those of one database: each entry has one value for each version.
  const history = fc.uniqueArray(entry, {
    maxLength: 30,
    selector: ({ address, value }) => JSON.stringify([address, value.version]),
  });

  const stateOf = (derived: Derived) => {
    const view = derived.views.of(env);
    return {
      values: view.valuesFor(proUser).body,
      keys: keysOf(view),
      audiences: [...view.links.audiences.keys()].sort(),
      hash: derived.tags.of(env).hash,
    };
  };

  it("arrives at the state of a new edge, in any order", () => {
    const ordered = history.chain((entries) =>
      fc.tuple(
        fc.constant(entries),
        fc.shuffledSubarray(entries, { minLength: entries.length }),
        fc.integer({ min: 1, max: 4 }),
      ),
    );
    fc.assert(
      fc.property(ordered, ([entries, shuffled, size]) => {
        const derived = follow();
        for (let at = 0; at < shuffled.length; at += size)
          take(derived, ...shuffled.slice(at, at + size));
        // Flags that still wait keep an earlier state, which a new edge does not have.
        passTime(derived, maxWaitMs);
        expect(stateOf(derived)).toEqual(stateOf(follow(...entries)));
      }),
    );
  });

  it("changes exactly the flags that differ or refer to something that does", () => {
    fc.assert(
      fc.property(history, entry, (entries, last) => {
        const derived = follow(...entries);
        const before = derived.views.of(env);
        const after = take(derived, last);
        for (const key of keysOf(after)) {
          const [one, other] = [before.find(key), after.find(key)];
          if (one === other || one?.entry !== other?.entry) continue;
          const { audiences, flags } = other?.references ?? {
            audiences: new Map(),
            flags: new Map(),
          };
          const earlier = one?.references;
          const differs =
            [...audiences].some(([name, each]) => earlier?.audiences.get(name) !== each) ||
            [...flags].some(([name, each]) => earlier?.flags.get(name) !== each) ||
            audiences.size !== earlier?.audiences.size;
          expect(differs).toBe(true);
        }
      }),
    );
  });
});
