import type { TargetingRule } from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";
import type { Content, Flag, HistoryEntry, StoredState } from "../../src/flags/flag.ts";
import { type CheckedRules, noRules } from "../../src/flags/targeting-rules.ts";
import { decideRollback } from "../../src/history/decide-rollback.ts";
import { booleanFlag } from "../flags/boolean-flag.ts";

/** Tests the pure decision about rollbacks. */
const now = new Date("2026-11-20T12:00:00Z");
const flag: Flag = {
  id: "flag",
  organizationId: "organization",
  projectId: "project",
  key: "checkout",
  name: "Checkout",
  description: "",
  type: "release",
  ...booleanFlag,
  tags: [],
  owner: null,
  archivedAt: null,
  version: 7,
  lastEventAt: new Date("2026-11-20T11:00:00Z"),
  createdAt: new Date("2026-11-20T10:00:00Z"),
  updatedAt: new Date("2026-11-20T11:00:00Z"),
};
const state: StoredState = {
  flagId: "flag",
  environmentId: "production",
  content: {
    enabled: true,
    rollout_percentage: 10,
    targeting_rules: [{ conditions: [] }] as TargetingRule[] as CheckedRules,
  },
  version: 7,
  updatedAt: flag.updatedAt,
};
const environment = { id: "production", name: "production", protection: null, protectedAt: null };
let ids = 0;
const context = {
  actor: { id: "ada", email: "ada@example.com" },
  apiKeyId: null,
  via: "operator",
  cause: "rollback",
  now,
  newId: () => `id-${++ids}`,
} as const;

const entry = (change: Partial<Content> = {}): HistoryEntry => ({
  id: "entry",
  flagId: "flag",
  environmentId: "production",
  content: { ...state.content, ...change },
  changeType: "manual",
  changedBy: "bob",
  changedAt: new Date("2026-11-20T10:30:00Z"),
});

describe("a rollback", () => {
  it.each([
    ["the enabled state", { enabled: false }, ["flag.toggled"]],
    ["the rollout", { rollout_percentage: 90 }, ["flag_state.updated"]],
    ["the rules", { targeting_rules: noRules }, ["flag_state.updated"]],
    [
      "all fields",
      { enabled: false, rollout_percentage: 0, targeting_rules: noRules },
      ["flag.toggled", "flag_state.updated"],
    ],
  ])("restores %s, with the matching events", (_what, change, events) => {
    const restored = entry(change);
    const { content } = restored;
    const decision = decideRollback({ flag, state, environment }, [entry(), restored], context);
    expect(decision).toMatchObject({
      restored,
      state: { ...state, content, version: 8, updatedAt: now },
      history: [{ content, changeType: "rollback", changedBy: "ada", changedAt: now }],
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
