import { isOutage, type Sql } from "@halyard/postgres";
import { isProblem } from "@halyard/service";
import { startInterval } from "@halyard/timing";
import type { Logger } from "pino";
import { Counter, type Registry } from "prom-client";
import { entryToPublish } from "../outbox/outbox-message.ts";
import type { Writer } from "../outbox/write.ts";

/**
 * Removes data that is older than its retention period, independently of all other work. Every process does this
 * periodically. Database functions let only one process at a time remove history and audit entries; several processes
 * share the keys by row locks. Each batch is a transaction, so that locks are short and a stop waits for at most one
 * batch.
 */
const applyIntervalMs = 10 * 60 * 1_000;
/** Maximum number of rows per batch, so that a batch holds its locks for milliseconds only. */
const batchSize = 1_000;

/** Retention periods in days. Undefined means unlimited. */
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
    name: "halyard_retention_rows_removed_total",
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
    intervalMs: applyIntervalMs,
    isExpected: isOutage,
    onFailure: (err) => logger.warn({ err }, "retention could not be applied; retrying later"),
    beginsAtOnce: true,
  });
}

export async function applyRetention(
  { sql, writer, periods, now }: RetentionOptions,
  mayContinue: () => boolean,
): Promise<Removed> {
  const removed: Removed = { history: 0, changes: 0, api_keys: 0 };
  const { auditDays, endedKeyDays } = periods;
  if (auditDays !== undefined) await removeAudit(sql, auditDays, { removed, mayContinue });
  if (endedKeyDays !== undefined)
    for (let more = true; more && mayContinue(); ) {
      const keys = await removeKeys(writer, endedKeyDays, now);
      removed.api_keys += keys;
      more = keys === batchSize;
    }
  return removed;
}

/**
 * Removes history and audit entries. The history goes first, so that little of it is left to be removed with the
 * deletion of a flag. If another process is removing entries, this process leaves the work to it.
 */
async function removeAudit(
  sql: Sql,
  retentionDays: number,
  { removed, mayContinue }: { removed: Removed; mayContinue: () => boolean },
): Promise<void> {
  for (const removeBatch of [removeOldHistory, removeOldChanges, removeEndedHistory])
    for (let more = true; more; ) {
      const batch = mayContinue() ? await removeBatch(sql, retentionDays) : undefined;
      if (batch === undefined || batch.steps === null) return;
      removed.history += batch.history;
      removed.changes += batch.changes;
      more = batch.steps === batchSize;
    }
}

/**
 * The result of a database function that removes one batch of old rows. The runtime role has no right to delete from
 * these tables itself.
 */
type AuditBatch = {
  /** Number of visited rows or chains: `batchSize` if more may be left, null if another process is removing entries. */
  steps: number | null;
  /** Number of removed history entries. */
  history: number;
  changes: number;
};

/** Visits the next old history entries and removes those that they supersede. */
async function removeOldHistory(sql: Sql, retentionDays: number): Promise<AuditBatch | undefined> {
  const [batch] = await sql<AuditBatch[]>`
    select visited_entries as steps, removed_entries as history, 0 as changes
    from remove_old_history(${retentionDays}, ${batchSize})`;
  return batch;
}

/** Removes audit entries, and the remaining history of flags whose deletion is among them. */
async function removeOldChanges(sql: Sql, retentionDays: number): Promise<AuditBatch | undefined> {
  const [batch] = await sql<AuditBatch[]>`
    select removed_changes as steps, removed_entries as history, removed_changes as changes
    from remove_old_changes(${retentionDays}, ${batchSize})`;
  return batch;
}

/** Removes the recorded ends of old chains of deleted projects and environments, with the remaining history. */
async function removeEndedHistory(
  sql: Sql,
  retentionDays: number,
): Promise<AuditBatch | undefined> {
  const [batch] = await sql<AuditBatch[]>`
    select removed_chains as steps, removed_entries as history, 0 as changes
    from remove_ended_history(${retentionDays}, ${batchSize})`;
  return batch;
}

/**
 * Removes ended keys, and publishes tombstones for expired ones, which are still in the snapshot. Revoked keys left the
 * snapshot at their revocation. Returns the number of removed keys.
 */
async function removeKeys(writer: Writer, retentionDays: number, now: () => Date): Promise<number> {
  const done = await writer(async ({ tx, publish }) => {
    const removed = await tx<
      { keyId: string; organizationId: string; nextVersion: number; wasRevoked: boolean }[]
    >`
      select key_id as "keyId", organization_id as "organizationId", next_version as "nextVersion",
        was_revoked as "wasRevoked"
      from remove_ended_keys(${retentionDays}, ${batchSize})`;
    const committed_at = now().toISOString();
    publish(
      removed
        .filter(({ wasRevoked }) => !wasRevoked)
        .map(({ keyId, organizationId, nextVersion }) =>
          entryToPublish({
            address: { kind: "key", organizationId, keyId },
            value: { deleted: true, version: nextVersion, committed_at },
          }),
        ),
    );
    return { keys: removed.length };
  });
  return isProblem(done) ? 0 : done.keys;
}
