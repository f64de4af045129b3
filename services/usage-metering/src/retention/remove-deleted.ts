import { type Fragment, fragment, type Sql } from "@halyard/postgres";
import type { SweepOptions } from "@halyard/server-key-service";
import type { Deletions } from "@halyard/snapshot";

/** Maximum number of rows in a batch, which holds its locks for milliseconds. */
const batchSize = 1_000;

/**
 * Returns what the sweep does: it removes the rows about the last use of deleted flags and keys. Counts that arrive late
 * may write such a row again, for a later sweep.
 */
export function createRemove(
  sql: Sql,
  deletions: Pick<Deletions, "before">,
): SweepOptions["remove"] {
  return async (beforeMs, mayContinue) => {
    const flags = deletions.before("flag", beforeMs);
    const environments = deletions.before("environment", beforeMs);
    const keys = deletions.before("key", beforeMs);
    const isFlag = fragment`(flag_id, environment_id) in (
      select * from unnest(${flags.map(({ flagId }) => flagId)}::uuid[],
        ${flags.map(({ environmentId }) => environmentId)}::uuid[]))`;
    const inEnvironment = fragment`
      environment_id = any(${environments.map(({ environmentId }) => environmentId)}::uuid[])`;
    const isKey = fragment`key_id = any(${keys.map(({ keyId }) => keyId)}::text[])`;
    for (const remove of [
      () => removeRows(sql, fragment`flags_last_seen`, isFlag),
      () => removeRows(sql, fragment`flags_last_seen`, inEnvironment),
      () => removeRows(sql, fragment`keys_last_seen`, isKey),
    ])
      while ((await mayContinue()) && (await remove()) === batchSize);
  };
}

/** Removes a batch of rows, and returns their number. Skips a row that is being written, so it never waits. */
async function removeRows(sql: Sql, table: Fragment, isDeleted: Fragment): Promise<number> {
  const removed = await sql`
    delete from ${table}
    where ctid = any(array(
      select ctid from ${table} where ${isDeleted}
      limit ${batchSize}
      for update skip locked
    ))`;
  return removed.count;
}
