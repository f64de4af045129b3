import { describe, expect, it } from "@jest/globals";
import type { AuditedChange } from "../src/api/schema.d.ts";
import { changeDifferences } from "../src/changes/change-difference.ts";
import { sentenceOf, sentenceText } from "../src/changes/describe-change.ts";
import { differenceText } from "../src/state/difference.ts";

const isoTime = (instant: Date) => instant.toISOString();
const entry: AuditedChange = {
  id: "c1",
  action: "state",
  change_type: "manual",
  flag_id: "f1",
  flag_key: "checkout",
  key_id: null,
  webhook_id: null,
  user_id: null,
  environment_id: "e1",
  actor: { id: "u1", email: "ada@example.com" },
  api_key_id: null,
  before: null,
  after: null,
  changed_at: "2027-01-31T09:00:00.000Z",
};
const off = { enabled: false, rollout_percentage: 100, targeting_rules: [] };
const on = { ...off, enabled: true };
const staff = { name: "staff", conditions: [] };
const hook = {
  name: "Deploy bot",
  url: "https://hooks.example.com/***",
  events: ["flag.created"],
  enabled: true,
  has_secret: true,
};
const times = {
  schedule_id: "s1",
  enable_at: "2027-02-14T08:00:00.000Z",
  disable_at: "2027-02-01T08:00:00.000Z",
};

const typed = { ...on, serve: { variation: "blue" }, off_variation: "grey" };
const half = {
  split: [
    { variation: "blue", weight: 50, ranges: [[0, 5_000]] },
    { variation: "red", weight: 50, ranges: [[5_000, 10_000]] },
  ],
};

const cases: [text: string, change: Partial<AuditedChange>][] = [
  [
    "set the values of checkout to blue 50 %, red 50 % in production",
    { before: typed, after: { ...typed, serve: half } },
  ],
  [
    "changed the values of checkout in production",
    { before: typed, after: { ...typed, off_variation: null } },
  ],
  [
    "changed the required flags of checkout in production",
    { before: on, after: { ...on, requires: [{ flag: "payments", is: "on" }] } },
  ],
  [
    "changed the list of the audience beta",
    { action: "audience_list_changed", flag_id: null, flag_key: null, audience_key: "beta" },
  ],
  [
    "changed the buckets of checkout in production",
    { before: on, after: { ...on, bucket_by: "company" } },
  ],
  [
    "changed the variations of checkout",
    {
      action: "settings",
      environment_id: null,
      before: { name: "Checkout", variations: [{ key: "blue", value: "#00f" }] },
      after: { name: "Checkout", variations: [{ key: "blue", value: "#00c" }] },
    },
  ],
  ["turned checkout on in production", { before: off, after: on }],
  [
    "turned checkout on at 10 % in production",
    { before: off, after: { ...on, rollout_percentage: 10 } },
  ],
  [
    "turned checkout off in production by schedule",
    { before: on, after: off, change_type: "scheduled" },
  ],
  ["rolled checkout back in production", { before: on, after: off, change_type: "rollback" }],
  [
    "set the percentage of checkout to 5 % in production",
    { before: on, after: { ...on, rollout_percentage: 5 } },
  ],
  [
    "added rule “staff” to checkout in production",
    { before: on, after: { ...on, targeting_rules: [staff] } },
  ],
  [
    "removed rule “staff” from checkout in production",
    { before: { ...on, targeting_rules: [staff] }, after: on },
  ],
  ["created checkout", { action: "created", after: { ...off, name: "Checkout", type: "release" } }],
  ["deleted checkout", { action: "deleted", before: on }],
  [
    "changed the name and description of checkout",
    {
      action: "settings",
      before: { name: "a", description: "b", type: "release" },
      after: { name: "A", description: "B", type: "release" },
    },
  ],
  [
    "archived checkout",
    { action: "settings", before: { archived: false }, after: { archived: true } },
  ],
  [
    "restored checkout",
    { action: "settings", before: { archived: true }, after: { archived: false } },
  ],
  [
    "added the tag beta to checkout",
    { action: "settings", before: { tags: ["a"] }, after: { tags: ["a", "beta"] } },
  ],
  [
    "removed the tags a and b from checkout",
    { action: "settings", before: { tags: ["a", "b"] }, after: { tags: [] } },
  ],
  [
    "changed the tags of checkout",
    { action: "settings", before: { tags: ["a"] }, after: { tags: ["b"] } },
  ],
  [
    "set the owner of checkout to Team Shop",
    { action: "settings", before: { owner: null }, after: { owner: "Team Shop" } },
  ],
  [
    "removed the owner of checkout",
    { action: "settings", before: { owner: "Team Shop" }, after: { owner: null } },
  ],
  [
    "changed the tags and archive of checkout",
    {
      action: "settings",
      before: { tags: [], archived: false },
      after: { tags: ["a"], archived: true },
    },
  ],
  [
    "changed the name of checkout and its state in production",
    { action: "settings", before: { name: "a", ...off }, after: { name: "A", ...on } },
  ],
  [
    "scheduled checkout to turn off at 2027-02-01T08:00:00.000Z and on at 2027-02-14T08:00:00.000Z in production",
    { action: "schedule_set", after: times },
  ],
  ["cleared the schedule of checkout in production", { action: "schedule_cleared", before: times }],
  [
    "issued the API key Build in production",
    { action: "key_issued", after: { name: "Build", kind: "server" } },
  ],
  [
    "renamed the project Web to Shop",
    { action: "project_renamed", before: { name: "Web" }, after: { name: "Shop" } },
  ],
  [
    "marked the environment live with caution",
    {
      action: "environment_changed",
      before: { name: "live", caution: false },
      after: { name: "live", caution: true },
    },
  ],
  [
    "added the user Ada",
    { action: "user_created", after: { name: "Ada", email: "ada@example.com" } },
  ],
  [
    "changed the user ada@example.com",
    { action: "user_changed", after: { name: null, email: "ada@example.com" } },
  ],
  [
    "created the webhook Deploy bot (hooks.example.com)",
    { action: "webhook_created", after: hook },
  ],
  [
    "turned the webhook Deploy bot off",
    {
      action: "webhook_changed",
      before: hook,
      after: { ...hook, enabled: false, changed_fields: ["enabled"] },
    },
  ],
  [
    "changed the URL and secret of the webhook Deploy bot",
    {
      action: "webhook_changed",
      before: hook,
      after: { ...hook, changed_fields: ["url", "secret"] },
    },
  ],
];

describe("a change in words", () => {
  it.each(cases)("says %s", (text, change) => {
    expect(sentenceText(sentenceOf({ ...entry, ...change }, "production", isoTime))).toBe(text);
  });
});

describe("what differs in an entry", () => {
  const differences = (change: Partial<AuditedChange>) =>
    changeDifferences({ ...entry, ...change }, isoTime).map(differenceText);

  it("says that a masked URL and a secret changed", () => {
    const after = { ...hook, changed_fields: ["url", "secret"] };
    expect(differences({ action: "webhook_changed", before: hook, after })).toEqual([
      "URL: https://hooks.example.com/*** → another one",
      "Secret: set → another one",
    ]);
  });

  it("lists the values of something new, and of something deleted", () => {
    const unused = { tags: [], owner: null, archived: false };
    const flag = { ...on, name: "Checkout", description: "", type: "release", ...unused };
    const state =
      "On. Percentage of the flag: 100 %. No rules: the percentage applies to all users";
    expect(differences({ action: "created", after: flag })).toEqual([
      "Name added: Checkout",
      "Type added: release",
      `State added: ${state}`,
    ]);
    expect(differences({ action: "deleted", before: flag })).toContain(`State removed: ${state}`);
  });

  it("names the variations with their values, of which it cuts long ones", () => {
    const blue = { key: "blue", value: "#00f", name: "Blue" };
    const after = { variations: [blue, { key: "long", value: "x".repeat(300) }] };
    expect(differences({ before: { variations: [blue] }, after })).toEqual([
      `Variations: blue (Blue) = "#00f" → blue (Blue) = "#00f", long = "${"x".repeat(199)}…`,
    ]);
  });

  it("describes the alternatives and the list of an audience", () => {
    const before = { name: "Beta", match: [], list: null };
    const beta = { attribute: "plan", operator: "equals", value: "beta" };
    const after = { name: "Beta", match: [[beta]], list: { attribute: "id", count: 1 } };
    expect(differences({ action: "audience_changed", before, after })).toEqual([
      "Alternatives: none → Alternative 1: plan is beta",
      "List: none → 1 entry, compared with id",
    ]);
  });

  it("shows fields of a newer release by their own names", () => {
    expect(differences({ before: { new_field: 1 }, after: { new_field: { a: 2 } } })).toEqual([
      'new field: 1 → {"a":2}',
    ]);
  });
});
