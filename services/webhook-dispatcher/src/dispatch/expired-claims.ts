import { isOutage, type Sql } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import type { Logger } from "pino";
import {
  type ClaimTimes,
  expiredClaims,
  type HeldClaim,
  releaseExpiredClaims,
  renewClaims,
} from "./claim-store.ts";

/**
 * The periodic check for expired claims. It renews the claims that this process still holds, and releases those of
 * processes that have failed or are suspended.
 */
export type ExpiredClaims = { stop(): Promise<void> };

/** Maximum number of claims per check: those of five processes with all slots in use. Later checks find the others. */
const maxPerCheck = 5_000;
/** Maximum number of claims per statement, so that rows are locked for milliseconds only. */
const batchSize = 500;

export function watchForExpiredClaims(options: {
  sql: Sql;
  /** Returns the claims that this process holds. */
  held: () => HeldClaim[];
  claimTimes: ClaimTimes;
  /** Called when deliveries are due again. */
  onFreed: () => void;
  logger: Logger;
}): ExpiredClaims {
  const { sql, claimTimes, logger } = options;
  let sightings: Sightings = new Map();

  async function check(signal: AbortSignal): Promise<void> {
    const before = sightings;
    // A failed check resets the counts. PostgreSQL is unavailable then, and no process can renew its claims.
    sightings = new Map();
    const expired = await expiredClaims(sql, maxPerCheck);
    const judged = judgeExpiredClaims(expired, { held: options.held(), before });
    if (judged.held.length > 0) await renewClaims(sql, judged.held, claimTimes.lastsMs);
    for (let from = 0; from < judged.lost.length && !signal.aborted; from += batchSize) {
      const deliveries = await releaseExpiredClaims(sql, judged.lost.slice(from, from + batchSize));
      // Another replica has released these claims.
      if (deliveries === 0) continue;
      logger.warn({ deliveries }, "claims have expired; repeating their attempts");
      options.onFreed();
    }
    sightings = judged.sightings;
  }

  return startInterval(check, {
    intervalMs: claimTimes.pollIntervalMs,
    isExpected: isOutage,
    onFailure: (err) => logger.warn({ err }, "the check for expired claims failed; retrying"),
  });
}

/**
 * A claim whose time has passed. Its process may still be alive and unable to record the attempt, for example because
 * PostgreSQL was unavailable. Therefore each process renews its own claims at every check. It treats a claim of another
 * process as lost only after it has found it expired in several consecutive checks. A live process would have renewed
 * it meanwhile.
 */
export type ExpiredClaim = {
  /** The id of the delivery. */
  id: string;
  webhookId: string;
  /** Null if the process has released the claim. */
  claim: string | null;
};

/** Number of consecutive checks that found each claim expired. */
export type Sightings = ReadonlyMap<string, number>;

/**
 * Number of checks after which a claim is lost: ten seconds with one check per second. After an outage, the check of a
 * live process may wait until the process has recorded up to a thousand attempts.
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
