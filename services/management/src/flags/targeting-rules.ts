import { maxRulesBytes, type TargetingRule } from "@halyard/contracts";
import { expectedPercentage, findRulesProblem, hundredths } from "@halyard/evaluation";
import { createProblem, type Problem } from "@halyard/http";

declare const isChecked: unique symbol;

/**
 * Rules that `checkRules` has accepted, now or before they were stored. No other function returns this type, so neither
 * a request nor a scheduled change can store unchecked rules.
 */
export type CheckedRules = TargetingRule[] & { readonly [isChecked]: true };

export type WithCheckedRules<Request> = Omit<Request, "targeting_rules"> & {
  targeting_rules?: CheckedRules | undefined;
};

/**
 * Rejects rules that match the schema and are still unusable: rules that are too large for a message, and values that
 * their operator cannot use. It needs only the request, so it runs before any database work. Stored rules are not
 * checked again, so that rules of an earlier release can still be read and replaced. `parent` is the JSON pointer to the
 * request in the body.
 */
export function checkRules<
  Request extends {
    targeting_rules?: TargetingRule[] | undefined;
    rollout_percentage?: number | undefined;
  },
>(request: Request, parent = ""): WithCheckedRules<Request> | Problem {
  const { targeting_rules: rules, rollout_percentage: percentage } = request;
  const problem =
    checkPercentage(percentage, parent) ??
    (rules && (checkSize(rules, parent) ?? checkValues(rules, parent)));
  return problem ?? (request as WithCheckedRules<Request>);
}

function checkPercentage(percentage: number | undefined, parent: string): Problem | undefined {
  if (percentage === undefined || hundredths(percentage) !== undefined) return undefined;
  return createProblem(
    "VALIDATION_001",
    `${parent}/rollout_percentage must be ${expectedPercentage}`,
  );
}

/** The rules of a flag that was never changed. */
export const noRules = [] as TargetingRule[] as CheckedRules;

/** Checks the size of the rules as serialized JSON, which can be longer than the request: `1e20` has 21 digits. */
function checkSize(rules: readonly TargetingRule[], parent: string): Problem | undefined {
  const bytes = Buffer.byteLength(JSON.stringify(rules));
  if (bytes <= maxRulesBytes) return undefined;
  return createProblem(
    "VALIDATION_001",
    `${parent}/targeting_rules must be at most ${maxRulesBytes} bytes as JSON, and these are ${bytes}`,
  );
}

function checkValues(rules: readonly TargetingRule[], parent: string): Problem | undefined {
  const problem = findRulesProblem(rules);
  if (problem === undefined) return undefined;
  return createProblem(
    "VALIDATION_001",
    `${parent}/targeting_rules${problem.pointer} must be ${problem.expected}`,
  );
}
