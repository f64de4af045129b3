import type { Condition, Requirement } from "../api/schema.d.ts";
import type { Serve, TargetingRule } from "./flag-state.ts";
import { hasOtherUsers, serveText, withoutRanges } from "./serve.ts";
import {
  capitalized,
  comparisonText,
  conditionText,
  itemsText,
  outcomeText,
  ruleName,
  ruleText,
} from "./words.ts";

/** One difference between two versions of something, in words. */
export type Difference = {
  /** The differing part: "Percentage", or the name of a rule. */
  readonly label: string;
  /** Undefined if it was added. */
  readonly before?: string | undefined;
  /** Undefined if it was removed. */
  readonly after?: string | undefined;
  /** The parts that differ, in place of `before` and `after`. */
  readonly parts?: readonly Difference[];
};

/** Returns a difference unless both texts are the same. */
export const changed = (label: string, before: string, after: string): Difference[] =>
  before === after ? [] : [{ label, before, after }];

/** Returns the difference between what two states or rules serve. */
export function serveDifferences(
  before: Serve | undefined,
  after: Serve | undefined,
  absent = "as the flag",
): Difference[] {
  const textOf = (serve: Serve | undefined) => (serve === undefined ? absent : serveText(serve));
  const text = textOf(after);
  if (before !== undefined && after !== undefined && textOf(before) === text)
    return hasOtherUsers(before, after)
      ? [{ label: "Served", before: text, after: `${text}, to other users` }]
      : [];
  return changed("Served", textOf(before), text);
}

type Placed = { rule: TargetingRule; index: number; content: string };
type Pair = { before: Placed; after: Placed };

/** Returns the differences between two lists of rules. */
export function ruleDifferences(
  before: readonly TargetingRule[],
  after: readonly TargetingRule[],
): Difference[] {
  const { pairs, removed, added } = pairRules(before.map(place), after.map(place));
  const label = ({ rule, index }: Placed) => capitalized(ruleName(rule, index));
  return [
    ...added.map((placed) => ({ label: label(placed), after: ruleText(placed.rule) })),
    ...pairs.flatMap((pair) => {
      const parts = partsOf(pair);
      return parts.length === 0 ? [] : [{ label: label(pair.after), parts }];
    }),
    ...removed.map((placed) => ({ label: label(placed), before: ruleText(placed.rule) })),
    ...orderDifference(pairs),
  ];
}

/** Returns the positions of rules in a former list, by the positions of the same rules in a newer list. */
export function counterparts(
  before: readonly TargetingRule[],
  after: readonly TargetingRule[],
): ReadonlyMap<number, number> {
  const { pairs } = pairRules(before.map(place), after.map(place));
  return new Map(pairs.map((pair) => [pair.after.index, pair.before.index]));
}

/** Returns whether two lists of rules give the same to the same users. */
export const haveEqualRules = (
  before: readonly TargetingRule[],
  after: readonly TargetingRule[],
): boolean => ruleDifferences(before, after).length === 0;

/** Ids do not count, and a rule without a value gives true. */
const place = (rule: TargetingRule, index: number): Placed => {
  const { name = "", conditions, value = true, rollout_percentage: percentage, serve } = rule;
  const served = serve && withoutRanges(serve);
  const content = JSON.stringify([name, conditions.map(conditionId), value, percentage, served]);
  return { rule, index, content };
};

function conditionId(condition: Condition): string {
  if ("audience" in condition) return JSON.stringify([condition.audience]);
  if ("flag" in condition) return JSON.stringify([condition.flag, condition.is]);
  const { attribute, operator, value, match_case = false } = condition;
  return JSON.stringify([attribute, operator, value, match_case]);
}

/**
 * Ways to recognize a rule in another version, the surest first. Ids and names are optional, so the position is the last
 * resort for a rule that contradicts neither.
 */
const isSameRule: readonly ((before: Placed, after: Placed) => boolean)[] = [
  ({ rule: a }, { rule: b }) => a.id !== undefined && a.id === b.id,
  (a, b) => a.content === b.content,
  ({ rule: a }, { rule: b }) => a.name !== undefined && a.name === b.name,
  (a, b) => a.index === b.index && agree(a.rule.id, b.rule.id) && agree(a.rule.name, b.rule.name),
];

const agree = (a: string | undefined, b: string | undefined): boolean =>
  a === undefined || b === undefined || a === b;

function pairRules(before: readonly Placed[], after: readonly Placed[]) {
  const pairs: Pair[] = [];
  let removed = [...before];
  let added = [...after];
  for (const isSame of isSameRule) {
    for (const next of added) {
      const former = removed.find((candidate) => isSame(candidate, next));
      if (former === undefined) continue;
      pairs.push({ before: former, after: next });
      removed = removed.filter((other) => other !== former);
    }
    const found = new Set(pairs.map((pair) => pair.after));
    added = added.filter((other) => !found.has(other));
  }
  return { pairs: pairs.toSorted((a, b) => a.after.index - b.after.index), removed, added };
}

function partsOf({ before: { rule: before }, after: { rule: after } }: Pair): Difference[] {
  return [
    ...changed("Name", before.name ?? "none", after.name ?? "none"),
    ...conditionDifferences(before.conditions, after.conditions),
    ...changed("Result", outcomeText(before), outcomeText(after)),
    ...serveDifferences(before.serve, after.serve),
  ];
}

/** Returns the differences between two lists of required flags. */
export const requirementDifferences = (
  before: readonly Requirement[] = [],
  after: readonly Requirement[] = [],
): Difference[] => conditionDifferences(before, after, "Required flag");

/** Compares values and not their texts, because the text of a long list omits items. */
function conditionDifferences(
  before: readonly Condition[],
  after: readonly Condition[],
  label = "Condition",
): Difference[] {
  const without = (all: readonly Condition[], others: readonly Condition[]) => {
    const known = new Set(others.map(conditionId));
    return all.filter((condition) => !known.has(conditionId(condition)));
  };
  let removed = without(before, after);
  const differences = without(after, before).flatMap((next): Difference[] => {
    const former = removed.find((other) => comparisonText(other) === comparisonText(next));
    if (former === undefined) return [{ label, after: conditionText(next) }];
    removed = removed.filter((other) => other !== former);
    return (
      listDifferences(former, next) ?? [
        { label, before: conditionText(former), after: conditionText(next) },
      ]
    );
  });
  return [...differences, ...removed.map((former) => ({ label, before: conditionText(former) }))];
}

/** Returns the items of a list that were added and removed, or undefined if the conditions have no lists. */
function listDifferences(before: Condition, after: Condition): Difference[] | undefined {
  const [formerItems, nextItems] = [listIn(before), listIn(after)];
  if (formerItems === undefined || nextItems === undefined) return undefined;
  const former = new Set(formerItems);
  const next = new Set(nextItems);
  const label = comparisonText(after);
  const added = nextItems.filter((item) => !former.has(item));
  const removed = formerItems.filter((item) => !next.has(item));
  return [
    ...(added.length > 0 ? [{ label, after: itemsText(added, "and") }] : []),
    ...(removed.length > 0 ? [{ label, before: itemsText(removed, "and") }] : []),
  ];
}

const listIn = (condition: Condition) =>
  "attribute" in condition && Array.isArray(condition.value) ? condition.value : undefined;

/** The order matters, because the first rule that matches decides. Added and removed rules do not change it. */
function orderDifference(pairs: readonly Pair[]): Difference[] {
  const formerly = pairs.toSorted((a, b) => a.before.index - b.before.index);
  const names = (sorted: readonly Pair[]) =>
    sorted.map(({ after: { rule, index } }) => ruleName(rule, index)).join(", ");
  return changed("Order of the rules", names(formerly), names(pairs));
}

/** Writes a difference as one line: "Percentage: 10 % → 50 %". */
export function differenceText({ label, before, after, parts }: Difference): string {
  if (parts !== undefined) return `${label} changed (${parts.map(differenceText).join("; ")})`;
  if (before === undefined) return `${label} added: ${after}`;
  if (after === undefined) return `${label} removed: ${before}`;
  return `${label}: ${before} → ${after}`;
}
