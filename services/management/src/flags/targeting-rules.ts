import {
  maxRulesBytes,
  type ServeInput,
  type State,
  type TargetingRule,
  type TargetingRuleInput,
} from "@halyard/contracts";
import { expectedPercentage, findRulesProblem, hundredths } from "@halyard/evaluation";
import { createProblem, type Problem } from "@halyard/http";
import { checkServe } from "./serve.ts";

declare const isChecked: unique symbol;

/**
 * Rules that `checkRules` has accepted, now or before they were stored. No other function returns this type, so neither
 * a request nor a scheduled change can store unchecked rules.
 */
export type CheckedRules = TargetingRule[] & { readonly [isChecked]: true };

/** Rules of a request that `checkRules` has accepted. Their splits may lack ranges. */
type CheckedInput = TargetingRuleInput[] & { readonly [isChecked]: true };

export type WithCheckedRules<Request> = Omit<Request, "targeting_rules"> & {
  targeting_rules?: CheckedInput | undefined;
};

/**
 * Rejects rules that match the schema and are still unusable: rules that are too large for a message, and values that
 * their operator cannot use. It needs only the request, so it runs before any database work. Stored rules are not
 * checked again, so that rules of an earlier release can still be read and replaced. `parent` is the JSON pointer to the
 * request in the body.
 */
export function checkRules<
  Request extends {
    targeting_rules?: TargetingRuleInput[] | undefined;
    rollout_percentage?: number | undefined;
    serve?: ServeInput | undefined;
  },
>(request: Request, parent = ""): WithCheckedRules<Request> | Problem {
  const { targeting_rules: rules, rollout_percentage: percentage, serve } = request;
  const problem =
    checkPercentage(percentage, parent) ??
    checkServe(serve, `${parent}/serve`) ??
    (rules && checkRequestedRules(rules, parent));
  return problem ?? (request as unknown as WithCheckedRules<Request>);
}

const checkRequestedRules = (rules: TargetingRuleInput[], parent: string): Problem | undefined =>
  checkSize({ targeting_rules: rules }, parent) ??
  checkValues(rules, parent) ??
  checkServes(rules, `${parent}/targeting_rules`);

function checkServes(rules: readonly TargetingRuleInput[], pointer: string): Problem | undefined {
  for (const [index, { value, serve }] of rules.entries()) {
    if (value === false && serve !== undefined)
      return createProblem(
        "VALIDATION_001",
        `${pointer}/${index}/serve must be absent, because the rule has the value false`,
      );
    const problem = checkServe(serve, `${pointer}/${index}/serve`);
    if (problem !== undefined) return problem;
  }
  return undefined;
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

/** The members of a state that can be large. */
type Sized = { targeting_rules: TargetingRuleInput[] } & Pick<State, "serve" | "requires">;

/** Checks the size of a state with the ranges of its splits, which a request may leave out, and with its requirements. */
export function checkContentSize(
  { targeting_rules, serve, requires }: Sized,
  parent: string,
): Problem | undefined {
  const isSmall = serve === undefined && requires === undefined;
  return isSmall && targeting_rules.every((rule) => rule.serve === undefined)
    ? undefined
    : checkSize({ targeting_rules, serve, requires }, parent);
}

/**
 * Checks the size of the rules, of what is served, and of the requirements, as serialized JSON. It can be longer than the
 * request: `1e20` has 21 digits.
 */
function checkSize(
  { targeting_rules, serve, requires }: Sized,
  parent: string,
): Problem | undefined {
  const parts = [targeting_rules, serve, requires].filter((part) => part !== undefined);
  const bytes = parts.reduce((sum, part) => sum + Buffer.byteLength(JSON.stringify(part)), 0);
  if (bytes <= maxRulesBytes) return undefined;
  return createProblem(
    "VALIDATION_001",
    `${parent}/targeting_rules must be at most ${maxRulesBytes} bytes as JSON, and these are ${bytes}`,
  );
}

function checkValues(rules: readonly TargetingRuleInput[], parent: string): Problem | undefined {
  const problem = findRulesProblem(rules);
  if (problem === undefined) return undefined;
  return createProblem(
    "VALIDATION_001",
    `${parent}/targeting_rules${problem.pointer} must be ${problem.expected}`,
  );
}
