import type { HeldClaim } from "./claimed-delivery.ts";

/**
 * Decides what becomes of claims that have run out. A claim runs out by a clock, also while the process
 * that holds it lives and only could not record its attempt, because PostgreSQL was away. So each process
 * renews at its look what it still holds, and takes a claim of another for lost when it has found it run
 * out at several looks in a row: whoever lives has looked meanwhile.
 */
export type ExpiredClaim = {
  /** Of the delivery. */
  id: string;
  webhookId: string;
  /** Null: given up by its holder. */
  claim: string | null;
};

/** At how many looks in a row each claim was found run out. */
export type Sightings = ReadonlyMap<string, number>;

/**
 * With a look a second, ten seconds. After an outage a look may wait behind all that its process has to
 * record, which is a thousand attempts at most.
 */
export const looksUntilLost = 10;

export function judgeExpiredClaims(
  expired: readonly ExpiredClaim[],
  known: { held: readonly HeldClaim[]; before: Sightings },
): { held: HeldClaim[]; lost: ExpiredClaim[]; sightings: Sightings } {
  const own = new Set(known.held.map(keyOf));
  const held: HeldClaim[] = [];
  const lost: ExpiredClaim[] = [];
  const sightings = new Map<string, number>();
  for (const one of expired) {
    const { id, claim } = one;
    if (claim === null) {
      lost.push(one);
      continue;
    }
    const key = keyOf({ id, claim });
    if (own.has(key)) {
      held.push({ id, claim });
      continue;
    }
    const times = (known.before.get(key) ?? 0) + 1;
    sightings.set(key, times);
    if (times >= looksUntilLost) lost.push(one);
  }
  return { held, lost, sightings };
}

const keyOf = ({ id, claim }: HeldClaim) => `${id} ${claim}`;
