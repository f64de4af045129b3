import { isOutage, type Sql } from "@halyard/postgres";
import { periodically } from "@halyard/service";
import type { Logger } from "pino";
import { freeExpiredClaims } from "./claim-store.ts";

/** Looks for claims that have run out, of processes that have died or stand still. */
const lookEveryMs = 1_000;
/** One statement's worth: its rows are locked for milliseconds. */
const batchSize = 500;

export type ExpiredClaims = { stop(): Promise<void> };

export function watchForExpiredClaims(options: {
  sql: Sql;
  /** Deliveries are due again. */
  onFreed: () => void;
  logger: Logger;
}): ExpiredClaims {
  const { sql, logger } = options;

  async function look(mayGoOn: () => boolean): Promise<void> {
    let freed: number;
    do {
      freed = await freeExpiredClaims(sql, batchSize);
      if (freed === 0) return;
      logger.warn({ deliveries: freed }, "claims have run out; the attempts are made again");
      options.onFreed();
    } while (freed === batchSize && mayGoOn());
  }

  return periodically(lookEveryMs, look, {
    isExpected: isOutage,
    onFailure: (err) => logger.warn({ err }, "not looking for expired claims now"),
  });
}
