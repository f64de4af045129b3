import { isOutage, type Sql } from "@halyard/postgres";
import { isProblem } from "@halyard/service";
import { startInterval } from "@halyard/timing";
import type { Logger } from "pino";
import { Counter, type Registry } from "prom-client";
import { entryToPublish } from "../outbox/outbox-message.ts";
import type { Writer } from "../outbox/write.ts";

/**
 * Removes what is older than the operator wants to keep, apart from all other work. Every process does so
 * from time to time; the functions of the database let one at a time remove history and audit log, and
 * several share the keys by row locks. Batches are transactions of their own, so that none holds its locks
 * for long and a stop waits for one at most.
 */
const applyIntervalMs = 10 * 60 * 1_000;
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
    onFailure: (err) => logger.warn({ err }, "retention is not applied now"),
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
 * The history first, so that little of it is left to go with the deletion of a flag. Where another process
 * is at it, this one leaves all of it to that one.
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
 * The functions of the database that remove what is older than a period, a batch each. The service's role
 * has no right to delete from these tables itself.
 */
type AuditBatch = {
  /** As many as the batch allows if more is left; null while another process removes something. */
  steps: number | null;
  /** Removed rows. */
  history: number;
  changes: number;
};

/** Visits the next old entries of the history and removes those that they supersede. */
async function removeOldHistory(sql: Sql, retentionDays: number): Promise<AuditBatch | undefined> {
  const [batch] = await sql<AuditBatch[]>`
    select visited_entries as steps, removed_entries as history, 0 as changes
    from remove_old_history(${retentionDays}, ${batchSize})`;
  return batch;
}

/** Removes entries of the audit log, and the rest of the history of flags whose deletion is among them. */
async function removeOldChanges(sql: Sql, retentionDays: number): Promise<AuditBatch | undefined> {
  const [batch] = await sql<AuditBatch[]>`
    select removed_changes as steps, removed_entries as history, removed_changes as changes
    from remove_old_changes(${retentionDays}, ${batchSize})`;
  return batch;
}

/** Removes the recorded ends of old chains of deleted projects and environments, with the rest of their history. */
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
 * Removes keys that ended, and publishes the deletions of those that are still in the snapshot: a revoked key left it
 * when it was revoked, an expired one stays. Returns their number.
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
