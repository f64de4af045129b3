import type { TargetingRule } from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import type { Flag, FlagState, HistoryEntry } from "../src/flags/flag.ts";
import { type CheckedRules, noRules } from "../src/flags/targeting-rules.ts";
import { decideRollback } from "../src/history/decide-rollback.ts";
import {
  type Break,
  finish,
  follow,
  type Link,
  type Walk,
} from "../src/history/verification/chain.ts";

/** Tests the pure decisions about rollbacks and breaks of chains. */
const now = new Date("2026-11-20T12:00:00Z");
const flag: Flag = {
  id: "flag",
  organizationId: "organization",
  projectId: "project",
  key: "checkout",
  name: "Checkout",
  description: "",
  type: "release",
  version: 7,
  lastEventAt: new Date("2026-11-20T11:00:00Z"),
  createdAt: new Date("2026-11-20T10:00:00Z"),
  updatedAt: new Date("2026-11-20T11:00:00Z"),
};
const state: FlagState = {
  flagId: "flag",
  environmentId: "production",
  enabled: true,
  rolloutPercentage: 10,
  targetingRules: [{ conditions: [] }] as readonly TargetingRule[] as CheckedRules,
  version: 7,
  updatedAt: flag.updatedAt,
};
const environment = { id: "production", name: "production" };
let ids = 0;
const context = {
  actor: { id: "ada", email: "ada@example.com" },
  apiKeyId: null,
  cause: "rollback",
  now,
  newId: () => `id-${++ids}`,
} as const;

const entry = (settings: Partial<HistoryEntry> = {}): HistoryEntry => ({
  id: "entry",
  flagId: "flag",
  environmentId: "production",
  enabled: state.enabled,
  rolloutPercentage: state.rolloutPercentage,
  targetingRules: state.targetingRules,
  changeType: "manual",
  changedBy: "bob",
  changedAt: new Date("2026-11-20T10:30:00Z"),
  ...settings,
});

describe("a rollback", () => {
  it.each([
    ["the enabled state", { enabled: false }, ["flag.toggled"]],
    ["the rollout", { rolloutPercentage: 90 }, ["flag_state.updated"]],
    ["the rules", { targetingRules: noRules }, ["flag_state.updated"]],
    [
      "all fields",
      { enabled: false, rolloutPercentage: 0, targetingRules: noRules },
      ["flag.toggled", "flag_state.updated"],
    ],
  ])("restores %s, with the matching events", (_what, settings, events) => {
    const restored = entry(settings);
    const decision = decideRollback({ flag, state, environment }, [entry(), restored], context);
    expect(decision).toMatchObject({
      restored,
      state: { ...state, ...settings, version: 8, updatedAt: now },
      history: [{ ...settings, changeType: "rollback", changedBy: "ada", changedAt: now }],
      audit: [{ action: "state", cause: "rollback", actor: { id: "ada" } }],
    });
    const published = "messages" in decision ? decision.messages : [];
    expect(
      published.flatMap((message) => (message.stream === "events" ? [message.event.event] : [])),
    ).toEqual(events);
  });

  it.each([
    ["there is one entry", [entry()]],
    ["there is none", []],
    ["the previous entry has the same state", [entry(), entry()]],
  ])("is rejected when %s", (_what, newestFirst) => {
    expect(decideRollback({ flag, state, environment }, newestFirst, context)).toMatchObject({
      rejected: "CONFLICT_002",
    });
  });
});

/** Returns the links of an unbroken chain, as the database returns them. */
function chain(flagId: string, length: number): Link[] {
  return Array.from({ length }, (_, index) => ({
    id: `${flagId}-${index}`,
    flagId,
    environmentId: "production",
    sequence: index,
    changedAt: now,
    previousHash: index === 0 ? "" : `${flagId}#${index - 1}`,
    hash: `${flagId}#${index}`,
    intact: true,
    removedHash: "",
    removedEntries: 0,
    isOfKnownFlag: true,
  }));
}

function breaksOf(links: readonly Link[]): Break[] {
  let walk: Walk = { at: "start" };
  const breaks: Break[] = [];
  for (const link of links) {
    const followed = follow(walk, link);
    walk = followed.walk;
    breaks.push(...followed.breaks);
  }
  return [...breaks, ...finish(walk)];
}

const before = chain("a", 3);
const after = chain("c", 3);
const length = fc.integer({ min: 2, max: 12 });
const anywhere = fc.nat({ max: 11 });

describe("following chains", () => {
  it("finds no break in unbroken chains of any length", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 5 })), (lengths) => {
        const links = lengths.flatMap((count, index) => chain(`flag-${index}`, count));
        expect(breaksOf(links)).toEqual([]);
      }),
    );
  });

  it("names a changed entry at any position", () => {
    fc.assert(
      fc.property(length, anywhere, (count, where) => {
        const links = chain("b", count);
        const at = where % count;
        const changed = { ...links[at], intact: false } as Link;
        const found = breaksOf([...before, ...links.with(at, changed), ...after]);
        expect(found).toEqual([{ scope: changed, kind: "changed", entry: changed }]);
      }),
    );
  });

  it("names the entries around missing ones at any position but the end", () => {
    fc.assert(
      fc.property(length, anywhere, fc.integer({ min: 1, max: 4 }), (count, where, some) => {
        const links = chain("b", count + some);
        const at = where % count;
        const found = breaksOf([...before, ...links.toSpliced(at, some), ...after]);
        const next = links[at + some];
        expect(found).toMatchObject(
          at === 0
            ? [{ kind: "missing_before", entry: next }]
            : [{ kind: "missing_between", entry: links[at - 1], next }],
        );
      }),
    );
  });

  it.each([
    ["links to the previous entry", (at: number) => `b#${at - 1}`],
    ["links to an unknown hash", () => "unknown"],
    ["links to the newest entry, as the database does", () => "b#11"],
  ])("names an inserted entry that %s", (_what, previousOf) => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 11 }), (at) => {
        const links = chain("b", 12);
        const inserted = {
          ...links[at],
          id: "inserted",
          hash: "inserted",
          previousHash: previousOf(at),
        } as Link;
        const found = breaksOf([...before, ...links.toSpliced(at, 0, inserted), ...after]);
        expect(found).toMatchObject([{ kind: "inserted", entry: inserted, next: links[at] }]);
      }),
    );
  });

  it("reports an unknown flag", () => {
    const unknown = chain("b", 3).map((link) => ({ ...link, isOfKnownFlag: false }));
    expect(breaksOf([...before, ...unknown, ...after])).toEqual([
      { scope: unknown[0], kind: "flag_unknown" },
    ]);
  });

  it("names the first break of each chain", () => {
    const broken = (flagId: string) => chain(flagId, 9).filter((_, index) => index % 3 !== 2);
    expect(breaksOf([...broken("b"), ...broken("c")])).toMatchObject([
      { kind: "missing_between", entry: { id: "b-1" }, next: { id: "b-3" } },
      { kind: "missing_between", entry: { id: "c-1" }, next: { id: "c-3" } },
    ]);
  });
});
