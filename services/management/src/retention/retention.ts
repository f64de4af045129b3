import { isOutage, type Sql } from "@halyard/postgres";
import { isRefusal } from "@halyard/service";
import { startInterval } from "@halyard/timing";
import type { Logger } from "pino";
import { Counter, type Registry } from "prom-client";
import type { Writer } from "../outbox/write.ts";
import {
  removeEndedHistory,
  removeEndedKeys,
  removeOldChanges,
  removeOldHistory,
} from "./remove-old.ts";

/**
 * Removes what is older than the operator wants to keep, apart from all other work. Every process does so
 * from time to time; the functions of the database let one at a time remove history and audit log, and
 * several share the keys by row locks. Batches are transactions of their own, so that none holds its locks
 * for long and a stop waits for one at most.
 */
const applyEveryMs = 10 * 60 * 1_000;
/** Small enough that a batch holds its locks for milliseconds. */
const batchSize = 1_000;

/** Days; undefined means for good. */
export type RetentionPeriods = {
  auditDays: number | undefined;
  endedKeyDays: number | undefined;
};

type Removed = { history: number; changes: number; api_keys: number };

type RetentionOptions = { sql: Sql; writer: Writer; periods: RetentionPeriods; now: () => Date };

export function startRetention(options: RetentionOptions & { metrics: Registry; logger: Logger }): {
  stop(): Promise<void>;
} {
  const { metrics, logger } = options;
  const rows = new Counter({
    name: "halyard_retention_removed_rows_total",
    help: "Rows that this process removed because they were older than their retention period.",
    labelNames: ["table"],
    registers: [metrics],
  });
  const work = async (signal: AbortSignal) => {
    const removed = await applyRetention(options, () => !signal.aborted);
    for (const [table, count] of Object.entries(removed)) rows.inc({ table }, count);
    if (Object.values(removed).some((count) => count > 0))
      logger.info({ removed }, "removed rows older than their retention period");
  };
  return startInterval(work, {
    everyMs: applyEveryMs,
    isExpected: isOutage,
    onFailure: (err) => logger.warn({ err }, "retention is not applied now"),
    beginsAtOnce: true,
  });
}

export async function applyRetention(
  { sql, writer, periods, now }: RetentionOptions,
  mayGoOn: () => boolean,
): Promise<Removed> {
  const removed: Removed = { history: 0, changes: 0, api_keys: 0 };
  const { auditDays, endedKeyDays } = periods;
  if (auditDays !== undefined) await removeAudit(sql, auditDays, { removed, mayGoOn });
  if (endedKeyDays !== undefined)
    for (let more = true; more && mayGoOn(); ) {
      const keys = await removeKeys(writer, endedKeyDays, now);
      removed.api_keys += keys;
      more = keys === batchSize;
    }
  return removed;
}

/**
 * The history first, so that little of it is left to go with the deletion of a flag. Where another process
 * is at it, this one leaves all of it to that one.
 */
async function removeAudit(
  sql: Sql,
  keptDays: number,
  { removed, mayGoOn }: { removed: Removed; mayGoOn: () => boolean },
): Promise<void> {
  const batch = { keptDays, atMost: batchSize };
  for (let more = true; more; ) {
    const done = mayGoOn() ? await removeOldHistory(sql, batch) : undefined;
    if (done === undefined) return;
    removed.history += done.removedEntries;
    more = done.visitedEntries === batchSize;
  }
  for (let more = true; more; ) {
    const done = mayGoOn() ? await removeOldChanges(sql, batch) : undefined;
    if (done === undefined) return;
    removed.changes += done.removedChanges;
    removed.history += done.removedEntries;
    more = done.removedChanges === batchSize;
  }
  for (let more = true; more; ) {
    const done = mayGoOn() ? await removeEndedHistory(sql, batch) : undefined;
    if (done === undefined) return;
    removed.history += done.removedEntries;
    more = done.removedChains === batchSize;
  }
}

async function removeKeys(writer: Writer, keptDays: number, now: () => Date): Promise<number> {
  const done = await writer(async ({ tx, publish }) => {
    const batch = { keptDays, atMost: batchSize, now: now() };
    const { removedKeys, deletions } = await removeEndedKeys(tx, batch);
    if (deletions.length > 0) publish(deletions);
    return { removedKeys };
  });
  return isRefusal(done) ? 0 : done.removedKeys;
}
