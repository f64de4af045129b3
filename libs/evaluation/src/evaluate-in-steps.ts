import type { CompiledFlag } from "./compile-flag.ts";
import type { EvaluationContext } from "./context.ts";
import type { Outcome } from "./outcome.ts";
import { outcomeOf } from "./rollout.ts";

/**
 * The same as `evaluate`, one condition after the other. It yields before each, so that whoever serves
 * others as well can stop and go on later: thousands of conditions may each have a long text to look
 * through. A step takes as long as one condition does.
 */
export function* evaluateInSteps(
  { plan, constant }: CompiledFlag,
  context: EvaluationContext,
): Generator<undefined, Outcome> {
  if (constant !== undefined) return constant;
  for (const { conditions, result } of plan.rules) {
    let matches = true;
    for (const { holds } of conditions) {
      yield;
      matches = holds(context);
      if (!matches) break;
    }
    if (matches) return outcomeOf(result, context);
  }
  return outcomeOf(plan.otherwise, context);
}
