import { longestRulesBytes, type TargetingRule } from "@halyard/contracts";
import { findRulesProblem } from "@halyard/evaluation";
import { type Refusal, refuse } from "@halyard/service";

/**
 * Refuses rules that have the right shape and still cannot be taken: those that would not fit a
 * message, and those with a value that their operator can do nothing with. It needs nothing but the
 * rules, so it goes before any work in the database. Rules that are stored already are not looked at
 * again: whatever an earlier release took can be read, and replaced.
 */
export function checkRules(rules: readonly TargetingRule[] | undefined): Refusal | undefined {
  if (rules === undefined) return undefined;
  return checkSize(rules) ?? checkValues(rules);
}

/**
 * Rules are measured as we write them, which can be longer than what was sent: `1e20` has 21 digits.
 */
function checkSize(rules: readonly TargetingRule[]): Refusal | undefined {
  const bytes = Buffer.byteLength(JSON.stringify(rules));
  if (bytes <= longestRulesBytes) return undefined;
  return refuse(
    "VALIDATION_001",
    `/targeting_rules must be at most ${longestRulesBytes} bytes as JSON, and these are ${bytes}`,
  );
}

function checkValues(rules: readonly TargetingRule[]): Refusal | undefined {
  const problem = findRulesProblem(rules);
  if (problem === undefined) return undefined;
  return refuse("VALIDATION_001", `/targeting_rules${problem.pointer} must be ${problem.expected}`);
}
