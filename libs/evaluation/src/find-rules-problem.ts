import { isScalar } from "./attributes.ts";
import { hundredths } from "./bucket.ts";
import {
  type AttributeCondition,
  type Audience,
  type Condition,
  isAttributeCondition,
  type TargetingRule,
} from "./flag-state.ts";
import {
  canMatchCase,
  categoryOf,
  expectedValues,
  hasPattern,
  operatorNames,
} from "./operators/catalogue.ts";
import { readList } from "./operators/list.ts";
import { maxTotalSize } from "./regex/bounds.ts";
import { compileRegex, countUncompiled } from "./regex/compile-regex.ts";
import { instantOf, numberOf, textOf, versionOf } from "./subject.ts";

export const expectedPercentage = "a number from 0 to 100 with at most two decimals";

/** The position of a problem, as a JSON pointer relative to the array of rules, and the value expected there. */
type RulesProblem = { pointer: string; expected: string };

/**
 * Returns the first condition that no evaluation can use, in rules that match the schema. Rules without a problem
 * compile completely. Others must be rejected on write: evaluation would silently treat their conditions as false.
 */
export function findRulesProblem(
  rules: readonly Pick<TargetingRule, "conditions" | "rollout_percentage">[],
): RulesProblem | undefined {
  let left = maxTotalSize;
  for (const [ruleIndex, { conditions, rollout_percentage }] of rules.entries()) {
    if (rollout_percentage !== undefined && hundredths(rollout_percentage) === undefined)
      return { pointer: `/${ruleIndex}/rollout_percentage`, expected: expectedPercentage };
    const checked = checkConditions(conditions, left);
    if ("problem" in checked)
      return { pointer: `/${ruleIndex}/conditions/${checked.at}`, expected: checked.problem };
    left -= checked.countsAs;
  }
  return undefined;
}

/**
 * Returns the first condition of an audience that no evaluation can use, in alternatives that match the schema. The
 * pointer is relative to `match`.
 */
export function findMatchProblem(match: Audience["match"]): RulesProblem | undefined {
  let left = maxTotalSize;
  for (const [index, conditions] of match.entries()) {
    const checked = checkConditions(conditions, left);
    if ("problem" in checked)
      return { pointer: `/${index}/${checked.at}`, expected: checked.problem };
    left -= checked.countsAs;
  }
  return undefined;
}

/** Checks the conditions of attributes. References to audiences and flags are for the caller to check. */
function checkConditions(conditions: readonly Condition[], left: number): Checked<string> {
  let countsAs = 0;
  for (const [index, condition] of conditions.entries()) {
    if (!isAttributeCondition(condition)) continue;
    const checked = checkCondition(condition, left - countsAs);
    if ("problem" in checked) return { ...checked, at: `${index}/${checked.at}` };
    countsAs += checked.countsAs;
  }
  return { countsAs };
}

type Checked<At = "operator" | "value" | "match_case"> =
  /** Contribution of the regular expressions to `maxTotalSize`; 0 without any. */
  { countsAs: number } | { at: At; problem: string };

/** Checks one condition. `left` is what its regular expression may still count towards `maxTotalSize`. */
function checkCondition(
  { operator, value, match_case }: AttributeCondition,
  left: number,
): Checked {
  if (match_case !== undefined && categoryOf(operator) !== undefined && !canMatchCase(operator))
    return { at: "match_case", problem: "absent for this operator" };
  switch (categoryOf(operator)) {
    case "list":
      return expect(readList(value) !== undefined, expectedValues.list);
    case "number":
      return expect(
        isScalar(value) && !(Number.isNaN(numberOf(value)) && Number.isNaN(instantOf(value))),
        expectedValues.number,
      );
    case "semver":
      return expect(isScalar(value) && versionOf(value) !== undefined, expectedValues.semver);
    case "string":
      if (isScalar(value) && hasPattern(operator)) return checkRegex(textOf(value), left);
      return expect(isScalar(value), expectedValues.string);
    case undefined:
      return { at: "operator", problem: `one of ${operatorNames.join(", ")}` };
  }
}

function expect(isMet: boolean, expected: string): Checked {
  return isMet ? { countsAs: 0 } : { at: "value", problem: expected };
}

function checkRegex(pattern: string, left: number): Checked {
  // Reject before compiling: the bound limits the time spent on compiling.
  if (left < maxTotalSize && countUncompiled(pattern) > left) return tooMuchTogether;
  const regex = compileRegex(pattern);
  if (!regex.ok) {
    return { at: "value", problem: `a regular expression in RE2 syntax; ${regex.problem}` };
  }
  const unmatchable = describeUnmatchable(regex.shortestMatch(), regex.maxTextLength);
  if (unmatchable !== undefined) {
    return { at: "value", problem: `a regular expression that can match; ${unmatchable}` };
  }
  return regex.countsAs > left ? tooMuchTogether : { countsAs: regex.countsAs };
}

/** Checked only on write. Stored rules can contain such expressions because an earlier release accepted them. */
function describeUnmatchable(shortest: number, longest: number): string | undefined {
  if (shortest <= longest) return undefined;
  if (shortest === Number.POSITIVE_INFINITY) return "no text matches it";
  return `it matches only texts of at least ${shortest} characters, and texts longer than ${longest} are not searched with an expression of this size`;
}

const tooMuchTogether: Checked = {
  at: "value",
  problem:
    "fewer or smaller regular expressions in all rules together. Classes such as \\pL, and wide ranges such as [\\x{80}-\\x{ffff}] under (?i), count most. If possible, use in, contains, starts_with or ends_with instead",
};
