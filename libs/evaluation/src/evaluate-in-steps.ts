import type { CompiledFlag } from "./compile-flag.ts";
import type { EvaluationContext } from "./context.ts";
import type { Outcome } from "./outcome.ts";
import { outcomeOf, type Rollout } from "./rollout.ts";

/**
 * The same as `evaluate`, step by step. It yields before each condition and each percentage, so that its caller can
 * serve others in between: each may have to read a long text, and there may be thousands of them.
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

/** Hashing a long id for thousands of percentages takes long. */
function* outcomeInSteps(
  result: Outcome | Rollout,
  context: EvaluationContext,
): Generator<undefined, Outcome> {
  if ("decide" in result) yield;
  return outcomeOf(result, context);
}
