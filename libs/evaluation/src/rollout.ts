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

/**
 * Compiles a percentage. Returns undefined for 100, which includes every user, even one without a unit. With `needsUnit`,
 * because a split follows, it includes only users with a unit.
 */
export function compileRollout(
  { key, bucket_by, bucket_seed }: ResolvedState,
  percentage: number,
  { needsUnit = false }: { needsUnit?: boolean } = {},
): Rollout | undefined {
  // A percentage of another type includes no user.
  const firstOutside = typeof percentage === "number" ? Math.round(percentage * 100) : 0;
  if (firstOutside >= buckets && !needsUnit) return undefined;
  const flag = hashFlag(bucket_seed ?? key);
  const { state, tail, lengthBytes } = flag;
  const unit = unitNameOf({ bucket_by });
  if (firstOutside >= buckets) return { flag, unit, firstOutside, decide: decideByPresence(unit) };
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

/** Includes every user with a unit. The split after it hashes the unit, and a percentage of 100 needs no second hash. */
function decideByPresence(unit: AttributeName | undefined): Rollout["decide"] {
  if (unit === undefined)
    return ({ user }) => (user === null ? outcomes.splitOff : outcomes.splitOn);
  return (context) => (context.unitOf(unit) === null ? outcomes.splitOff : outcomes.splitOn);
}

/** Returns the attribute with the unit. Undefined for the user's id. */
export function unitNameOf({
  bucket_by,
}: Pick<ResolvedState, "bucket_by">): AttributeName | undefined {
  return typeof bucket_by === "string" ? attributeName(bucket_by) : undefined;
}

/** Returns the outcome for a context: the given one, or the decision of the rollout. */
export function outcomeOf(result: Outcome | Rollout, context: EvaluationContext): Outcome {
  return "decide" in result ? result.decide(context) : result;
}
