import type { References } from "./compiled.ts";
import {
  type Audience,
  type AudienceCondition,
  type Condition,
  isAttributeCondition,
  isAudienceCondition,
  isRequirement,
  type Requirement,
  type State,
} from "./flag-state.ts";

export const noReferences: References = { audiences: new Map(), flags: new Map() };

/** The keys that a state refers to, without duplicates. */
export type ReferredKeys = {
  readonly audiences: readonly string[];
  readonly flags: readonly string[];
};

/** The keys of a state that refers to nothing. */
export const noKeys: ReferredKeys = { audiences: [], flags: [] };

/** Returns the keys of the audiences and flags that a state refers to. Ignores malformed parts. */
export function referredKeys({
  targeting_rules: rules,
  requires,
}: Pick<State, "targeting_rules" | "requires">): ReferredKeys {
  const found: (AudienceCondition | Requirement)[] = [];
  if (requires !== undefined) found.push(...objectsOf(requires));
  for (const rule of arrayOr(rules))
    for (const condition of arrayOr(rule?.conditions))
      if (isObject(condition) && !isAttributeCondition(condition)) found.push(condition);
  if (found.length === 0) return noKeys;
  const audiences = found.filter(isAudienceCondition).map(({ audience }) => audience);
  const flags = found.filter(isRequirement).map(({ flag }) => flag);
  return { audiences: [...new Set(audiences)], flags: [...new Set(flags)] };
}

/**
 * Returns the key of the first unknown audience or flag to which an enabled state refers; undefined if all are known.
 * A flag with an unknown reference counts as not found.
 */
export function findMissing(
  state: Pick<State, "enabled" | "targeting_rules" | "requires">,
  references: { [Kind in keyof References]: Pick<References[Kind], "has"> },
): string | undefined {
  if (!state.enabled) return undefined;
  const { audiences, flags } = referredKeys(state);
  return (
    audiences.find((key) => !references.audiences.has(key)) ??
    flags.find((key) => !references.flags.has(key))
  );
}

/** Returns the conditions of all rules. Ignores malformed parts. */
export function conditionsIn(rules: State["targeting_rules"] | undefined): Condition[] {
  return arrayOr(rules).flatMap((rule) => objectsOf(rule?.conditions));
}

const empty: readonly never[] = [];

/** Stored data can contain anything in place of a list. */
export function arrayOr<T>(list: readonly T[] | undefined): readonly T[] {
  return Array.isArray(list) ? list : empty;
}

function objectsOf<T extends object>(list: readonly T[] | undefined): readonly T[] {
  return arrayOr(list).filter(isObject);
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** Returns the audience with a key; undefined if it is unknown. */
export type FindAudience = (key: string) => Audience | undefined;
