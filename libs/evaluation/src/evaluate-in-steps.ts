import type { CompiledFlag, Evaluation } from "./compiled.ts";
import type { EvaluationContext } from "./context.ts";
import type { Pass } from "./last-result.ts";
import type { Outcome } from "./outcome.ts";
import { outcomeOf, type Rollout } from "./rollout.ts";

/**
 * Evaluates a flag like `evaluate` and `variationOf`, but in steps: yields before each condition and each percentage, so
 * that the caller can serve other requests in between. Each step can read a long text, and a flag can have thousands of
 * steps. `pass` has the results that several flags share; pass the same one for all flags of a context.
 */
export function* evaluateInSteps(
  { plan, constant, variationOf, served }: CompiledFlag,
  context: EvaluationContext,
  pass: Pass = new Map(),
): Generator<undefined, Evaluation> {
  if (constant !== undefined)
    return { outcome: constant, variation: variationOf?.(context, constant) };
  let result = plan.otherwise;
  let pick = plan.pickOtherwise;
  for (const rule of plan.rules) {
    let matches = true;
    for (const { holds, prepare } of rule.conditions) {
      yield;
      if (prepare !== undefined) yield* prepare(context, pass);
      matches = holds(context);
      if (!matches) break;
    }
    if (!matches) continue;
    ({ result, pick } = rule);
    break;
  }
  const outcome = yield* outcomeInSteps(result, context);
  if (served === undefined) return { outcome, variation: undefined };
  const { on, off } = served;
  return { outcome, variation: outcome.value ? (pick ?? on)(context) : off };
}

/** Yields before a percentage, because hashing a long id for thousands of percentages takes long. */
function* outcomeInSteps(
  result: Outcome | Rollout,
  context: EvaluationContext,
): Generator<undefined, Outcome> {
  if ("decide" in result) yield;
  return outcomeOf(result, context);
}
