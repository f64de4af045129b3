import { type AttributeName, attributeName } from "./attribute-name.ts";
import { buckets } from "./bucket.ts";
import type { EvaluationContext } from "./context.ts";
import type { ResolvedState } from "./flag-state.ts";
import { type Outcome, outcomes } from "./outcome.ts";
import { bucketIn, type HashedFlag, hashFlag } from "./user-hash.ts";

/** Decides by the bucket of a user, or of another unit such as a company, in one flag. */
export type Rollout = {
  readonly decide: (context: EvaluationContext) => Outcome;
  readonly flag: HashedFlag;
  /** The attribute with the unit. Undefined for the user's id. */
  readonly unit: AttributeName | undefined;
  /** The first bucket outside the percentage. */
  readonly firstOutside: number;
};

/** Compiles a percentage. Returns undefined for 100, which includes every user, even one without a unit. */
export function compileRollout(
  { key, bucket_by, bucket_seed }: ResolvedState,
  percentage: number,
): Rollout | undefined {
  // A percentage of another type includes no user.
  const firstOutside = typeof percentage === "number" ? Math.round(percentage * 100) : 0;
  if (firstOutside >= buckets) return undefined;
  const flag = hashFlag(bucket_seed ?? key);
  const { state, tail, lengthBytes } = flag;
  const unit = typeof bucket_by === "string" ? attributeName(bucket_by) : undefined;
  if (unit !== undefined)
    return {
      flag,
      unit,
      firstOutside,
      decide(context) {
        const hashed = context.unitOf(unit);
        return hashed !== null && bucketIn(state, tail, lengthBytes, hashed) < firstOutside
          ? outcomes.splitOn
          : outcomes.splitOff;
      },
    };
  return {
    flag,
    unit,
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
