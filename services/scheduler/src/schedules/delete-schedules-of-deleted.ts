import { type DeletedPlaces, removeOfDeletedPlaces } from "@halyard/jetstream";
import { isOutage, type Sql } from "@halyard/postgres";
import type { Logger } from "pino";

/** Deletes the schedules of environments whose deletion arrives in the snapshot. */
export function deleteSchedulesOfDeleted(options: {
  sql: Sql;
  settledRevision: () => Promise<number | undefined>;
  logger: Logger;
}): DeletedPlaces {
  return removeOfDeletedPlaces({
    ...options,
    kind: "environment",
    remove: (ids, mayGoOn) => deleteSchedulesOf(options.sql, ids, mayGoOn),
    isOutage,
    monotonicMs: () => performance.now(),
  });
}

/** Small enough that a batch holds its locks for milliseconds. */
const batchSize = 1_000;

/**
 * Deletes the schedules of deleted environments with their changes. A change that was sent comes back as cancelled,
 * because management does not find the flag; its schedule stays until the removal is repeated.
 */
async function deleteSchedulesOf(
  sql: Sql,
  environmentIds: readonly string[],
  mayGoOn: () => boolean,
): Promise<void> {
  for (let deleted = batchSize; mayGoOn() && deleted === batchSize; ) {
    const rows = await sql`
      delete from schedules
      where id = any(array(
        select schedule.id from schedules as schedule
        where schedule.environment_id = any(${environmentIds as string[]}::uuid[])
          and not exists (
            select from scheduled_changes as change
            where change.schedule_id = schedule.id and change.state = 'sent'
          )
        limit ${batchSize}
      ))`;
    deleted = rows.count;
  }
}
