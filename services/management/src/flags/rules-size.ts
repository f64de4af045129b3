import { longestRulesBytes, type TargetingRule } from "@halyard/contracts";
import { type Refusal, refuse } from "@halyard/service";

/**
 * Refuses rules that would not fit a message. They are measured as we write them, which can be longer
 * than what was sent: `1e20` has 21 digits.
 */
export function checkRulesSize(rules: readonly TargetingRule[] | undefined): Refusal | undefined {
  if (rules === undefined) return undefined;
  const bytes = Buffer.byteLength(JSON.stringify(rules));
  if (bytes <= longestRulesBytes) return undefined;
  return refuse(
    "VALIDATION_001",
    `/targeting_rules must be at most ${longestRulesBytes} bytes as JSON, and these are ${bytes}`,
  );
}
