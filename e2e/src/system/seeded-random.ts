import { createHash } from "node:crypto";

/** Random choices that depend only on a seed. */
export type Random = {
  /** Returns an integer that is at least 0 and less than `limit`. */
  upTo(limit: number): number;
  oneOf<T>(choices: readonly T[]): T;
};

export function seededRandom(seed: number): Random {
  let drawn = 0;
  function upTo(limit: number): number {
    drawn += 1;
    return createHash("sha256").update(`${seed} ${drawn}`).digest().readUInt32BE() % limit;
  }
  return { upTo, oneOf: (choices) => choices[upTo(choices.length)] as never };
}
