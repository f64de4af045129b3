import { createHash } from "node:crypto";
import {
  type Audience,
  compile,
  compileAudience,
  type Need,
  needsOf,
  type References,
  type ResolvedState,
} from "../src/index.ts";
import { condition } from "./flags.ts";
import { chunksByReference } from "./reference-fingerprints.ts";

/**
 * A flag that excludes a user by a part that a word of `needs` names, and the same flag without that part, as an
 * evaluator would read it that ignores what it does not know. It would include the user.
 */
export type ExcludingFlag = {
  word: Need;
  part: string;
  flag: ResolvedState;
  user: { id?: string; plan?: string };
  ignored: ResolvedState;
};

const flag: ResolvedState = {
  ...{ key: "new-checkout", enabled: true, rollout_percentage: 100, targeting_rules: [] },
};
const half: ResolvedState = { ...flag, rollout_percentage: 50 };
const isNotPro = condition("plan", "not_equals", "pro");

/** A flag that is off. */
export const payments: ResolvedState = { ...flag, key: "payments", enabled: false };

const listKey = "00".repeat(16);
/** The fingerprints of the list of the audience `testers`. */
export const [testersChunk = new Uint8Array()] = chunksByReference(listKey, ["user-1"], 0);
const list = {
  ...{ attribute: "id", count: 1, key: listKey },
  chunks: [createHash("sha256").update(testersChunk).digest("hex")],
};

/** The audiences that the flags use. */
export const audiences: ReadonlyMap<string, Audience> = new Map<string, Audience>([
  ["staff", { match: [[condition("plan", "equals", "staff")]] }],
  ["testers", { match: [], list }],
  ["testers-without-list", { match: [] }],
]);

export const references: References = {
  audiences: new Map(
    [...audiences].map(([key, audience]) => [
      key,
      compileAudience(audience, audience.list === undefined ? [] : [testersChunk]),
    ]),
  ),
  flags: new Map([[payments.key, compile(payments)]]),
};

type Rules = ResolvedState["targeting_rules"];
const forAll: Rules[number] = { conditions: [] };
const without = (...conditions: Rules[number]["conditions"]): Rules => [
  { conditions, value: false },
  forAll,
];
const halves = {
  split: [
    { variation: "red", weight: 50, ranges: [[0, 5_000]] },
    { variation: "blue", weight: 50, ranges: [[5_000, 10_000]] },
  ],
} as const;

export const excludingFlags: readonly ExcludingFlag[] = [
  {
    ...{ word: "audiences", part: "an audience that a rule excludes" },
    flag: { ...flag, targeting_rules: without({ audience: "staff" }) },
    user: { plan: "staff" },
    ignored: { ...flag, targeting_rules: [forAll] },
  },
  {
    ...{ word: "buckets", part: "the attribute of the buckets" },
    ...{ flag: { ...half, bucket_by: "company" }, user: { id: "user-1" }, ignored: half },
  },
  {
    ...{ word: "buckets", part: "the seed of the buckets" },
    ...{ flag: { ...half, bucket_seed: "spring" }, user: { id: "user-1" }, ignored: half },
  },
  {
    ...{ word: "buckets", part: "the decimals of a percentage" },
    flag: { ...flag, rollout_percentage: 6.3 },
    user: { id: "user-1" },
    ignored: { ...flag, rollout_percentage: 7 },
  },
  {
    ...{ word: "lists", part: "the list of an audience that a rule excludes" },
    flag: { ...flag, targeting_rules: without({ audience: "testers" }) },
    user: { id: "user-1" },
    ignored: { ...flag, targeting_rules: without({ audience: "testers-without-list" }) },
  },
  {
    ...{ word: "match-case", part: "the case of a rule that excludes users" },
    flag: { ...flag, targeting_rules: without({ ...isNotPro, match_case: true }) },
    user: { plan: "PRO" },
    ignored: { ...flag, targeting_rules: without(isNotPro) },
  },
  {
    ...{ word: "requires", part: "a required flag that is off" },
    flag: { ...flag, requires: [{ flag: payments.key, is: "on" }] },
    ...{ user: {}, ignored: flag },
  },
  {
    ...{ word: "values", part: "the split" },
    flag: {
      ...{ ...flag, value_type: "string", serve: halves, off_variation: null },
      variations: [{ key: "red" }, { key: "blue" }],
    },
    ...{ user: {}, ignored: flag },
  },
];

/** Returns a word that this evaluator lacks, in place of one that another evaluator lacks. */
export const lacking = (word: Need): string => `unknown-${word}`;

/** Returns the needs of a flag as an evaluator sees them that lacks the word. */
export function needsWithout({ word, flag }: ExcludingFlag): string[] {
  const needs = needsOf(flag, (key) => audiences.get(key));
  return needs.map((each) => (each === word ? lacking(word) : each));
}
