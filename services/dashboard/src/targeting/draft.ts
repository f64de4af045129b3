import { randomKey } from "../api/idempotency.ts";
import type { AttributeCondition, Condition } from "../api/schema.d.ts";
import type { Serve, State, TargetingRule } from "../state/flag-state.ts";
import { withoutRanges } from "../state/serve.ts";
import { stateIn } from "../state/state.ts";
import { hasInvalidWeight } from "./split.ts";

/** A condition with an identity, which stays the same when conditions are added or removed. */
export type DraftCondition = Readonly<Condition & { uid: string }>;
export type DraftComparison = Extract<DraftCondition, { attribute: string }>;
/** The text of a percentage field that is no percentage. The draft keeps the last valid percentage beside it. */
type InvalidText = { invalidPercentage?: string | undefined };
/** The share of a variation. `invalidWeight` is the text of its field that is no percentage. */
export type DraftShare = { variation: string; weight: number; invalidWeight?: string };
/** The served variations without ranges of buckets: the API allocates these so that the fewest users move. */
export type DraftServe = { variation: string } | { split: DraftShare[] };
type ServeInDraft = { serve?: DraftServe };
export type DraftRule = Readonly<
  Omit<TargetingRule, "conditions" | "serve"> &
    InvalidText &
    ServeInDraft & { uid: string; conditions: readonly DraftCondition[] }
>;
/** A state that is edited in a form. */
export type Draft = Readonly<
  Omit<State, "targeting_rules" | "serve"> &
    InvalidText &
    ServeInDraft & { rules: readonly DraftRule[] }
>;

/** Limits of the API. */
export const maxRules = 100;
export const maxConditions = 50;
export const maxRequirements = 10;

/** Makes identities differ from those of a draft that was kept over a reload. */
const loadedAt = Date.now().toString(36);
let lastUid = 0;
export function nextUid(): string {
  lastUid += 1;
  return `new-${loadedAt}-${lastUid}`;
}

/** Keeps the result for each argument. Drafts are immutable, so that an edit computes only what it changes. */
function remembered<From extends object, To>(compute: (from: From) => To): (from: From) => To {
  const results = new WeakMap<From, To>();
  return (from) => {
    if (!results.has(from)) results.set(from, compute(from));
    return results.get(from) as To;
  };
}

/** Makes a draft of a stored state. The identities are the positions, so a repeated read changes none. */
export const draftOf = remembered((stored: State): Draft => {
  const { targeting_rules: rules, ...others } = stateIn(stored);
  return {
    ...others,
    ...served(others.serve),
    rules: rules.map((rule, at) => ({
      ...rule,
      ...served(rule.serve),
      uid: `rule-${at}`,
      conditions: rule.conditions.map((condition, index) => ({
        ...condition,
        uid: `condition-${index}`,
      })),
    })),
  };
});

/** Returns the member without ranges and invalid texts, or nothing for a boolean flag. */
const served = (serve: Serve | undefined) =>
  serve === undefined ? {} : { serve: withoutRanges(serve) };

/** Returns the state that a draft describes. Members of rules that only say the default are left out. */
export function stateOf({ rules, ...others }: Draft): State {
  return stateIn({ ...others, ...served(others.serve), targeting_rules: rules.map(ruleOf) });
}

export const ruleOf = remembered(
  ({ id, name, conditions, value, rollout_percentage, serve }: DraftRule): TargetingRule => ({
    ...(id !== undefined && { id }),
    ...(name !== undefined && name.trim() !== "" && { name }),
    conditions: conditions.map(conditionOf),
    ...(value === false && { value }),
    ...(rollout_percentage !== undefined && { rollout_percentage }),
    ...(value !== false && served(serve)),
  }),
);

function conditionOf(condition: DraftCondition): Condition {
  if ("audience" in condition) return { audience: condition.audience };
  if ("flag" in condition) return { flag: condition.flag, is: condition.is };
  return comparisonOf(condition);
}

export const comparisonOf = (condition: DraftComparison): AttributeCondition => {
  const { attribute, operator, value, match_case } = condition;
  return { attribute, operator, value, ...(match_case === true && { match_case }) };
};

const jsonOf = remembered((rule: DraftRule): string => JSON.stringify(ruleOf(rule)));

/** Returns whether two drafts describe the same state. */
export function isSameDraft({ rules, ...some }: Draft, { rules: otherRules, ...others }: Draft) {
  return (
    JSON.stringify(stateOf({ ...some, rules: [] })) ===
      JSON.stringify(stateOf({ ...others, rules: [] })) &&
    rules.length === otherRules.length &&
    rules.every((rule, at) => jsonOf(rule) === jsonOf(otherRules[at] as DraftRule))
  );
}

/** Makes a draft of a state that was saved from another draft. Its rules keep the identities that they have there. */
export function draftOfSaved(saved: State, sent: Draft): Draft {
  const draft = draftOf(saved);
  if (draft.rules.length !== sent.rules.length) return draft;
  return {
    ...draft,
    rules: draft.rules.map((rule, at) => ({ ...rule, uid: sent.rules[at]?.uid ?? rule.uid })),
  };
}

/** Returns whether a field of a draft has a text that is no percentage. */
export const isInvalid = (draft: Draft): boolean =>
  [draft, ...draft.rules].some(
    ({ invalidPercentage, serve }) => invalidPercentage !== undefined || hasInvalidWeight(serve),
  );

/** Returns whether a draft equals the stored state, so that it needs no save. */
export function isSame(draft: Draft, stored: State): boolean {
  return !isInvalid(draft) && isSameDraft(draft, draftOf(stored));
}

/**
 * Returns the draft to continue with after `sent` was saved as `saved`. A draft that was edited during the request is
 * kept, so that the response does not replace what was typed. A draft that means the same as the saved state is kept
 * too: its rules keep their identities, so that open rules stay open and the focus stays where it is.
 */
export function draftAfterSave(draft: Draft, sent: Draft, saved: State): Draft {
  return draft !== sent || isSame(draft, saved) ? draft : draftOfSaved(saved, sent);
}

export function newCondition(): DraftComparison {
  return { uid: nextUid(), attribute: "", operator: "equals", value: "" };
}

/** Returns whether nothing was entered in a condition yet. */
export const isBlank = (condition: DraftCondition): boolean =>
  "attribute" in condition && condition.attribute === "" && condition.value === "";

/** Makes a rule with an id, by which a merge recognizes it after another person has changed it. */
export function newRule(): DraftRule {
  return { uid: nextUid(), id: randomKey(), conditions: [newCondition()] };
}

/** Copies a rule. The copy has another id, because ids name one rule. */
export function copyOf(rule: DraftRule): DraftRule {
  return {
    ...rule,
    uid: nextUid(),
    id: randomKey(),
    ...(rule.name !== undefined && { name: `${rule.name} (copy)` }),
    conditions: rule.conditions.map((condition) => ({ ...condition, uid: nextUid() })),
  };
}

/** Returns the list with one member at another position. */
export function moved<T>(list: readonly T[], from: number, to: number): readonly T[] {
  const member = list[from];
  if (member === undefined || to < 0 || to >= list.length) return list;
  return list.toSpliced(from, 1).toSpliced(to, 0, member);
}

/** The upper and the lower edge of a row. */
type Edges = { readonly top: number; readonly bottom: number };

/**
 * Returns the position of a dragged row, whose upper edge is at `top`. It passes a row when its edge passes the middle
 * of that row. Other thresholds make rows of different heights swap back and forth under a resting pointer.
 */
export function draggedTo(rows: readonly Edges[], from: number, top: number): number {
  const own = rows[from];
  if (own === undefined) return from;
  const bottom = top + own.bottom - own.top;
  const middle = (row: Edges) => (row.top + row.bottom) / 2;
  const above = rows.slice(0, from).filter((row) => top < middle(row)).length;
  const below = rows.slice(from + 1).filter((row) => bottom > middle(row)).length;
  return from - above + below;
}
