import type { CompiledFlag } from "./compile-flag.ts";
import type { EvaluationContext } from "./context.ts";
import type { Outcome } from "./outcome.ts";
import { outcomeOf, type Rollout } from "./rollout.ts";

/**
 * Evaluates a flag like `evaluate`, but in steps: yields before each condition and each percentage, so that the caller
 * can serve other requests in between. Each step can read a long text, and a flag can have thousands of steps.
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
    if (matches) return yield* outcomeInSteps(result, context);
  }
  return yield* outcomeInSteps(plan.otherwise, context);
}

/** Yields before a percentage, because hashing a long id for thousands of percentages takes long. */
function* outcomeInSteps(
  result: Outcome | Rollout,
  context: EvaluationContext,
): Generator<undefined, Outcome> {
  if ("decide" in result) yield;
  return outcomeOf(result, context);
}
