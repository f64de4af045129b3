import { isOutage, type Sql } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import type { Logger } from "pino";
import { expiredClaims, freeExpiredClaims, renewClaims } from "./claim-store.ts";
import type { ClaimTimes, HeldClaim } from "./claimed-delivery.ts";
import { judgeExpiredClaims, type Sightings } from "./judge-expired-claims.ts";

/**
 * Looks for claims that have run out: renews what this process still holds, and makes due again what was
 * held by processes that have died or stand still.
 */
export type ExpiredClaims = { stop(): Promise<void> };

/** What five processes hold when all their slots are taken; the next looks find the rest. */
const mostAtALook = 5_000;
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
    const expired = await expiredClaims(sql, mostAtALook);
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
    everyMs: claimTimes.lookEveryMs,
    isExpected: isOutage,
    onFailure: (err) => logger.warn({ err }, "not looking for expired claims now"),
  });
}
