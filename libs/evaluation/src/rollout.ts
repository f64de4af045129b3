import { buckets } from "./bucket.ts";
import type { EvaluationContext } from "./context.ts";
import { type Outcome, outcomes } from "./outcome.ts";
import { bucketIn, type HashedFlag, hashFlag } from "./user-hash.ts";

/** What a user gets by his place in the percentage of one flag. */
export type Rollout = {
  readonly decide: (context: EvaluationContext) => Outcome;
  readonly flag: HashedFlag;
  /** The first bucket that is outside. */
  readonly firstOutside: number;
};

/** Undefined for 100 percent, which everyone is inside of, also who has no id. */
export function compileRollout(flagKey: string, percentage: number): Rollout | undefined {
  // What is no number is no percentage, and nobody is below that.
  const firstOutside = typeof percentage === "number" ? percentage * (buckets / 100) : 0;
  if (firstOutside >= buckets) return undefined;
  const flag = hashFlag(flagKey);
  const { state, tail, lengthBytes } = flag;
  return {
    flag,
    firstOutside,
    decide: ({ user }) =>
      user !== undefined && bucketIn(state, tail, lengthBytes, user) < firstOutside
        ? outcomes.splitOn
        : outcomes.splitOff,
  };
}

/** What somebody gets who gets the same as all others, or what his bucket says. */
export function outcomeOf(result: Outcome | Rollout, context: EvaluationContext): Outcome {
  return "decide" in result ? result.decide(context) : result;
}
