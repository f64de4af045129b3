import { isOutage, type Sql } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import type { Logger } from "pino";
import {
  type ClaimTimes,
  expiredClaims,
  freeExpiredClaims,
  type HeldClaim,
  renewClaims,
} from "./claim-store.ts";

/**
 * Looks for claims that have run out: renews what this process still holds, and makes due again what was
 * held by processes that have died or stand still.
 */
export type ExpiredClaims = { stop(): Promise<void> };

/** What five processes hold when all their slots are taken; the next looks find the rest. */
const maxPerCheck = 5_000;
/** One statement's worth: its rows are locked for milliseconds. */
const batchSize = 500;

export function watchForExpiredClaims(options: {
  sql: Sql;
  /** What this process has in hand now. */
  held: () => HeldClaim[];
  claimTimes: ClaimTimes;
  /** Deliveries are due again. */
  onFreed: () => void;
  logger: Logger;
}): ExpiredClaims {
  const { sql, claimTimes, logger } = options;
  let sightings: Sightings = new Map();

  async function look(signal: AbortSignal): Promise<void> {
    const before = sightings;
    // A look that fails counts for nothing, and neither do those before it: PostgreSQL is away, and no
    // holder can renew or record.
    sightings = new Map();
    const expired = await expiredClaims(sql, maxPerCheck);
    const judged = judgeExpiredClaims(expired, { held: options.held(), before });
    if (judged.held.length > 0) await renewClaims(sql, judged.held, claimTimes.lastsMs);
    for (let from = 0; from < judged.lost.length && !signal.aborted; from += batchSize) {
      const deliveries = await freeExpiredClaims(sql, judged.lost.slice(from, from + batchSize));
      // Another replica was sooner.
      if (deliveries === 0) continue;
      logger.warn({ deliveries }, "claims have run out; the attempts are made again");
      options.onFreed();
    }
    sightings = judged.sightings;
  }

  return startInterval(look, {
    intervalMs: claimTimes.pollIntervalMs,
    isExpected: isOutage,
    onFailure: (err) => logger.warn({ err }, "not looking for expired claims now"),
  });
}

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
export const checksUntilLost = 10;

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
    if (times >= checksUntilLost) lost.push(one);
  }
  return { held, lost, sightings };
}

const keyOf = ({ id, claim }: HeldClaim) => `${id} ${claim}`;
