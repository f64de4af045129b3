import type { EvaluationContext } from "./context.ts";
import { codeOfOutcome, outcomes } from "./outcome.ts";
import type { Rollout } from "./rollout.ts";
import { bucketIn, type HashedUser } from "./user-hash.ts";

/**
 * Evaluates many rollouts by the id of one user, such as all flags with a percentage and no rules. The flags' hashes are
 * lists of numbers, which take 0.85 of the time of objects (bench `targeting`). The result is calculated without a
 * branch, because a processor mispredicts half of those for 50 %: that takes 0.75 of the time in process.
 */
type EvaluateRollouts = (context: EvaluationContext, outcomeCodes: Uint8Array) => void;

/** A rollout, and the position of its flag among all flags. */
export type PositionedRollout = { readonly position: number; readonly rollout: Rollout };

export function compileRollouts(rollouts: readonly PositionedRollout[]): EvaluateRollouts {
  const numbers = (read: (one: PositionedRollout) => number) => Int32Array.from(rollouts, read);
  const positions = numbers(({ position }) => position);
  const firstOutside = numbers(({ rollout }) => rollout.firstOutside);
  const states = numbers(({ rollout }) => rollout.flag.state);
  const tails = numbers(({ rollout }) => rollout.flag.tail);
  const lengths = numbers(({ rollout }) => rollout.flag.lengthBytes);
  const bucketAt = (i: number, user: HashedUser) =>
    bucketIn(states[i] as number, tails[i] as number, lengths[i] as number, user);
  return ({ user }, outcomeCodes) => {
    for (let i = 0; i < positions.length; i++) {
      const isInside = user === null ? 0 : Number(bucketAt(i, user) < (firstOutside[i] as number));
      outcomeCodes[positions[i] as number] = splitOff + isInside * (splitOn - splitOff);
    }
  };
}

const splitOn = codeOfOutcome(outcomes.splitOn);
const splitOff = codeOfOutcome(outcomes.splitOff);
