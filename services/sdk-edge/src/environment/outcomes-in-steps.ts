import { type EvaluationContext, evaluateInSteps, numberOfOutcome } from "@halyard/evaluation";
import type { EnvironmentView } from "./environment-view.ts";
import type { FlagValues } from "./flag-values.ts";

/**
 * The same as a view's `outcomesFor`, one condition after the other: for those who stop in between to
 * serve others. The bytes are the caller's own.
 */
export function* outcomesInSteps(
  { segments, keys }: EnvironmentView,
  context: EvaluationContext,
): Generator<undefined, Uint8Array> {
  const outcomeNumbers = new Uint8Array(keys.size);
  let index = 0;
  for (const { flags } of segments)
    for (const { compiled, outcomeWithoutContext } of flags) {
      // A generator costs far more than a constant flag, and most flags of a large environment are constant.
      outcomeNumbers[index] =
        compiled.constant === undefined
          ? numberOfOutcome(yield* evaluateInSteps(compiled, context))
          : outcomeWithoutContext;
      index += 1;
    }
  return outcomeNumbers;
}

/** The same as a view's `valuesFor`. */
export function* valuesInSteps(
  view: EnvironmentView,
  context: EvaluationContext,
): Generator<undefined, FlagValues> {
  return view.valuesOf(yield* outcomesInSteps(view, context));
}

/** The same as a view's `tagFor`. */
export function* tagInSteps(
  view: EnvironmentView,
  context: EvaluationContext,
): Generator<undefined, string> {
  return view.tagOf(yield* outcomesInSteps(view, context));
}
