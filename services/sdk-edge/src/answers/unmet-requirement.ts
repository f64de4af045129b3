import {
  type CompiledFlag,
  type EvaluationContext,
  type Outcome,
  outcomes,
  type Pass,
} from "@halyard/evaluation";

/** Returns the key of the first required flag that holds a flag back; undefined for other outcomes. */
export function unmetRequirement(
  { requirements = [] }: CompiledFlag,
  context: EvaluationContext,
  outcome: Outcome,
): string | undefined {
  if (outcome !== outcomes.prerequisiteFailed) return undefined;
  return requirements.find(({ met }) => !met.holds(context))?.requirement.flag;
}

/** Returns the same from the results in `pass`, after an evaluation in steps. */
export function* unmetInSteps(
  flag: CompiledFlag,
  context: EvaluationContext,
  { outcome, pass }: { outcome: Outcome; pass: Pass },
): Generator<undefined, string | undefined> {
  if (outcome !== outcomes.prerequisiteFailed) return undefined;
  for (const { met, requirement } of flag.requirements ?? []) {
    yield* met.prepare?.(context, pass) ?? [];
    if (!met.holds(context)) return requirement.flag;
  }
  return undefined;
}
