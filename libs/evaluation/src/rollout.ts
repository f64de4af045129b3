import { buckets } from "./bucket.ts";
import type { EvaluationContext } from "./context.ts";
import { type Outcome, outcomes } from "./outcome.ts";
import { bucketIn, type HashedFlag, hashFlag } from "./user-hash.ts";

/** Decides by a user's bucket in one flag. */
export type Rollout = {
  readonly decide: (context: EvaluationContext) => Outcome;
  readonly flag: HashedFlag;
  /** The first bucket outside the percentage. */
  readonly firstOutside: number;
};

/** Compiles a percentage. Returns undefined for 100, which includes every user, even one without an id. */
export function compileRollout(flagKey: string, percentage: number): Rollout | undefined {
  // A percentage of another type includes no user.
  const firstOutside = typeof percentage === "number" ? percentage * (buckets / 100) : 0;
  if (firstOutside >= buckets) return undefined;
  const flag = hashFlag(flagKey);
  const { state, tail, lengthBytes } = flag;
  return {
    flag,
    firstOutside,
    decide: ({ user }) =>
      user !== null && bucketIn(state, tail, lengthBytes, user) < firstOutside
        ? outcomes.splitOn
        : outcomes.splitOff,
  };
}

/** Returns the outcome for a context: the given one, or the decision of the rollout. */
export function outcomeOf(result: Outcome | Rollout, context: EvaluationContext): Outcome {
  return "decide" in result ? result.decide(context) : result;
}
