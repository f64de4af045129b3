import type { EvaluationContext } from "./context.ts";
import { numberOfOutcome, outcomes } from "./outcome.ts";
import type { Rollout } from "./rollout.ts";
import { type AlignedUser, bucketOfHalves } from "./user-hash.ts";

/**
 * Many rollouts for one user, such as all flags that have a percentage and no rules. The flags' halves
 * of the hashes stand side by side, those together that leave the same number of bytes over, because
 * these take the same words of the user's half.
 */
export type EvaluateRollouts = (context: EvaluationContext, outcomeNumbers: Uint8Array) => void;

/** A rollout with the place of its flag among all flags. */
export type PlacedRollout = { readonly place: number; readonly rollout: Rollout };

export function compileRollouts(rollouts: readonly PlacedRollout[]): EvaluateRollouts {
  const groups = [0, 1, 2, 3]
    .map((leftOver) => groupOf(leftOver, rollouts))
    .filter(({ places }) => places.length > 0);
  return ({ user }, outcomeNumbers) => {
    for (const group of groups) {
      if (user === undefined) for (const place of group.places) outcomeNumbers[place] = splitOff;
      else evaluateGroup(group, user.after(group.leftOver), outcomeNumbers);
    }
  };
}

type Group = {
  readonly leftOver: number;
  readonly places: Int32Array;
  readonly firstOutside: Int32Array;
  readonly states: Int32Array;
  readonly rests: Int32Array;
  readonly lengths: Int32Array;
};

function evaluateGroup(group: Group, user: AlignedUser, outcomeNumbers: Uint8Array): void {
  const { leftOver, places, firstOutside, states, rests, lengths } = group;
  for (let i = 0; i < places.length; i++) {
    const bucket = bucketOfHalves(
      states[i] as number,
      rests[i] as number,
      leftOver,
      lengths[i] as number,
      user,
    );
    outcomeNumbers[places[i] as number] = bucket < (firstOutside[i] as number) ? splitOn : splitOff;
  }
}

const splitOn = numberOfOutcome(outcomes.splitOn);
const splitOff = numberOfOutcome(outcomes.splitOff);

function groupOf(leftOver: number, rollouts: readonly PlacedRollout[]): Group {
  const members = rollouts.filter(({ rollout }) => rollout.flag.leftOver === leftOver);
  const numbers = (read: (one: PlacedRollout) => number) => Int32Array.from(members, read);
  return {
    leftOver,
    places: numbers(({ place }) => place),
    firstOutside: numbers(({ rollout }) => Math.ceil(rollout.firstOutside)),
    states: numbers(({ rollout }) => rollout.flag.state),
    rests: numbers(({ rollout }) => rollout.flag.rest),
    lengths: numbers(({ rollout }) => rollout.flag.lengthBytes),
  };
}
