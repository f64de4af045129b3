import { codeOfOutcome, type EvaluationContext, evaluateInSteps } from "@halyard/evaluation";
import type { EnvironmentView } from "./environment-view.ts";
import type { FlagValues } from "./flag-values.ts";

/**
 * Evaluates like a view's `outcomesFor`, one condition at a time, so that the caller can serve other requests in
 * between. The caller owns the returned bytes.
 */
export function* outcomesInSteps(
  { segments, keys }: EnvironmentView,
  context: EvaluationContext,
): Generator<undefined, Uint8Array> {
  const outcomeCodes = new Uint8Array(keys.size);
  let index = 0;
  for (const { flags } of segments)
    for (const { compiled, outcomeWithoutContext } of flags) {
      // A generator costs far more than a constant flag, and most flags of a large environment are constant.
      outcomeCodes[index] =
        compiled.constant === undefined
          ? codeOfOutcome(yield* evaluateInSteps(compiled, context))
          : outcomeWithoutContext;
      index += 1;
    }
  return outcomeCodes;
}

/** Evaluates like a view's `valuesFor`, one condition at a time. */
export function* valuesInSteps(
  view: EnvironmentView,
  context: EvaluationContext,
): Generator<undefined, FlagValues> {
  return view.valuesOf(yield* outcomesInSteps(view, context));
}

/** Evaluates like a view's `tagFor`, one condition at a time. */
export function* tagInSteps(
  view: EnvironmentView,
  context: EvaluationContext,
): Generator<undefined, string> {
  return view.tagOf(yield* outcomesInSteps(view, context));
}
