import {
  type FlagSearch,
  filterFlags,
  type ListedFlag,
  type ListedState,
  stateIn,
} from "../flags/flag-search.ts";
import { haveEqualRules } from "../state/difference.ts";
import type { TargetingRule } from "../state/flag-state.ts";
import { differingMembers, labelOf, type MemberName, memberNames } from "../state/state.ts";

/** `unknown`: whether the rules differ is not known before they are read. */
export type Comparison = {
  flag: ListedFlag;
  from: ListedState;
  to: ListedState;
  differing: readonly string[];
  isUnknown: boolean;
};

/** Finds the rules of a state among those that have been read. */
export type RulesOf = (
  flag: ListedFlag,
  state: ListedState,
) => readonly TargetingRule[] | undefined;

/** The members that the list of flags has. */
const listedMembers = memberNames.filter((name) => name !== "targeting_rules");

/** Compares one flag in two environments. The list of flags has the number of rules only, so equal numbers need the rules. */
export function compareFlag(
  flag: ListedFlag,
  fromId: string,
  toId: string,
  rulesOf: RulesOf,
): Comparison | undefined {
  const from = stateIn(flag, fromId);
  const to = stateIn(flag, toId);
  if (from === undefined || to === undefined) return undefined;
  const rules = compareRules(flag, from, to, rulesOf);
  const differing: MemberName[] = differingMembers(from, to, listedMembers);
  if (rules === "different") differing.push("targeting_rules");
  return { flag, from, to, differing: differing.map(labelOf), isUnknown: rules === "unknown" };
}

function compareRules(
  flag: ListedFlag,
  from: ListedState,
  to: ListedState,
  rulesOf: RulesOf,
): "equal" | "different" | "unknown" {
  if (from.rule_count !== to.rule_count) return "different";
  if (from.rule_count === 0) return "equal";
  const left = rulesOf(flag, from);
  const right = rulesOf(flag, to);
  if (left === undefined || right === undefined) return "unknown";
  return haveEqualRules(left, right) ? "equal" : "different";
}

export const differs = ({ differing }: Comparison): boolean => differing.length > 0;

/** Returns the comparisons to show: those that match the text, and without `all` those that differ or may differ. */
export function filterComparisons(
  comparisons: readonly Comparison[],
  { q, all }: { q?: FlagSearch["q"]; all?: boolean | undefined },
): readonly Comparison[] {
  const wanted = comparisons.filter(
    (comparison) => all === true || differs(comparison) || comparison.isUnknown,
  );
  const none = { environmentId: "", staleIds: undefined };
  const found = new Set(
    filterFlags(
      wanted.map(({ flag }) => flag),
      { q },
      none,
    ),
  );
  return wanted.filter(({ flag }) => found.has(flag));
}

/** The states whose rules are needed to decide a comparison, and have not been read. */
export function missingRules(
  comparisons: readonly Comparison[],
  rulesOf: RulesOf,
): readonly { flag: ListedFlag; state: ListedState }[] {
  return comparisons
    .filter(({ isUnknown }) => isUnknown)
    .flatMap(({ flag, from, to }) => [from, to].map((state) => ({ flag, state })))
    .filter(({ flag, state }) => rulesOf(flag, state) === undefined);
}
