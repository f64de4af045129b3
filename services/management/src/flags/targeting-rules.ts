import { maxRulesBytes, type TargetingRule } from "@halyard/contracts";
import { findRulesProblem } from "@halyard/evaluation";
import { createProblem, type Problem } from "@halyard/service";

declare const isChecked: unique symbol;

/**
 * Rules that `checkRules` accepted, now or before they were stored. No other function returns them, so that neither a
 * request nor a scheduled change stores rules that nobody checked.
 */
export type CheckedRules = readonly TargetingRule[] & { readonly [isChecked]: true };

/** A request whose rules are checked. */
export type WithCheckedRules<Request> = Omit<Request, "targeting_rules"> & {
  targeting_rules?: CheckedRules | undefined;
};

/**
 * Refuses rules that have the right shape and still cannot be taken: those that would not fit a
 * message, and those with a value that their operator can do nothing with. It needs nothing but the
 * rules, so it goes before any work in the database. Rules that are stored already are not looked at
 * again: whatever an earlier release took can be read, and replaced.
 */
export function checkRules<Request extends { targeting_rules?: TargetingRule[] | undefined }>(
  request: Request,
): WithCheckedRules<Request> | Problem {
  const rules = request.targeting_rules;
  const problem = rules && (checkSize(rules) ?? checkValues(rules));
  return problem ?? (request as WithCheckedRules<Request>);
}

/** The rules of a flag that nobody has changed. */
export const noRules = [] as readonly TargetingRule[] as CheckedRules;

/**
 * Rules are measured as we write them, which can be longer than what was sent: `1e20` has 21 digits.
 */
function checkSize(rules: readonly TargetingRule[]): Problem | undefined {
  const bytes = Buffer.byteLength(JSON.stringify(rules));
  if (bytes <= maxRulesBytes) return undefined;
  return createProblem(
    "VALIDATION_001",
    `/targeting_rules must be at most ${maxRulesBytes} bytes as JSON, and these are ${bytes}`,
  );
}

function checkValues(rules: readonly TargetingRule[]): Problem | undefined {
  const problem = findRulesProblem(rules);
  if (problem === undefined) return undefined;
  return createProblem(
    "VALIDATION_001",
    `/targeting_rules${problem.pointer} must be ${problem.expected}`,
  );
}
