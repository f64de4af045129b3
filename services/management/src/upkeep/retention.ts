import { isProblem } from "@halyard/http";
import { isOutage, type Sql } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import type { Logger } from "pino";
import { Counter, type Registry } from "prom-client";
import { removeEndedRequests } from "../change-requests/request-store.ts";
import { entryToPublish } from "../outbox/outbox-message.ts";
import type { Writer } from "../outbox/write.ts";

/**
 * Removes data that is older than its retention period, independently of all other work. Every process does this
 * periodically. A database function lets only one process at a time remove history entries; several processes share audit
 * entries and keys by row locks. Each batch is a transaction, so that locks are short and a stop waits for at most one
 * batch.
 */
const applyIntervalMs = 60 * 60 * 1_000;
/** Maximum number of rows per batch, so that a batch holds its locks for milliseconds only. */
const batchSize = 1_000;

/** Retention periods in days. Undefined means unlimited. */
export type RetentionPeriods = {
  auditDays: number | undefined;
  endedKeyDays: number | undefined;
};

type Removed = Record<
  "history" | "changes" | "audience_history" | "change_requests" | "api_keys",
  number
>;

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
  const { auditDays, endedKeyDays } = periods;
  const isKept = auditDays === undefined;
  return {
    history: isKept ? 0 : await removeOldHistory(sql, auditDays, mayContinue),
    changes: isKept ? 0 : await inBatches(() => removeOldChanges(sql, auditDays), mayContinue),
    audience_history: isKept
      ? 0
      : await inBatches(() => removeOldAudienceHistory(sql, auditDays), mayContinue),
    change_requests: isKept
      ? 0
      : await inBatches(() => removeEndedRequests(sql, auditDays, batchSize), mayContinue),
    api_keys:
      endedKeyDays === undefined
        ? 0
        : await inBatches(() => removeKeys(writer, endedKeyDays, now), mayContinue),
  };
}

/** Runs batches until one is not full. Returns the number of removed rows. */
async function inBatches(
  removeBatch: () => Promise<number>,
  mayContinue: () => boolean,
): Promise<number> {
  let removed = 0;
  for (let more = true; more && mayContinue(); ) {
    const count = await removeBatch();
    removed += count;
    more = count === batchSize;
  }
  return removed;
}

/**
 * Removes superseded history entries, in one pass over the old entries. Each process begins at the first entry, because
 * the deletion of a flag makes entries removable that an earlier pass kept. The database function returns nulls while
 * another process removes entries; this process then leaves the pass to it. The runtime role has no right to delete
 * from the tables of history and audit entries itself.
 */
async function removeOldHistory(
  sql: Sql,
  retentionDays: number,
  mayContinue: () => boolean,
): Promise<number> {
  let visitedUpTo = "00000000-0000-0000-0000-000000000000";
  let removed = 0;
  for (let more = true; more && mayContinue(); ) {
    const [batch] = await sql<
      [{ visited: number | null; lastVisited: string | null; removed: number }]
    >`
      select visited_entries as visited, last_visited as "lastVisited",
        coalesce(removed_entries, 0) as removed
      from remove_old_history(${retentionDays}, ${visitedUpTo}, ${batchSize})`;
    removed += batch.removed;
    visitedUpTo = batch.lastVisited ?? visitedUpTo;
    more = batch.visited === batchSize;
  }
  return removed;
}

async function removeOldChanges(sql: Sql, retentionDays: number): Promise<number> {
  const [batch] = await sql<[{ removed: number }]>`
    select remove_old_changes(${retentionDays}, ${batchSize}) as removed`;
  return batch.removed;
}

/** Removes superseded entries of the history of audiences. */
async function removeOldAudienceHistory(sql: Sql, retentionDays: number): Promise<number> {
  const [batch] = await sql<[{ removed: number }]>`
    select remove_old_audience_history(${retentionDays}, ${batchSize}) as removed`;
  return batch.removed;
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
