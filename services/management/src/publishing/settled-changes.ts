import type { Sql } from "@halyard/postgres";
import { pause } from "@halyard/timing";

/**
 * Waits until all entries up to a sequence are visible. Transactions commit out of the order of their sequences: after
 * an entry is visible, one with a lower sequence can still appear. Its transaction held a lock on the table by then. So
 * when all transactions that held such a lock have ended, no further entry up to that sequence can appear.
 */
type SettledChanges<Position> = {
  /**
   * Returns a position with no invisible entries before it: this one, or the one of an earlier call that timed out.
   * Returns undefined on a timeout; the next call continues the wait.
   */
  settle(position: Position): Promise<Position | undefined>;
};

/** Interval of reading the locks. Most transactions take a few milliseconds. */
const retryMs = 10;
/** Maximum wait of one call, so that the caller can do its other work meanwhile. */
const maxAttempts = 20;

export function createSettledChanges<Position>(sql: Sql): SettledChanges<Position> {
  let waiting: { position: Position; writers: string[] } | undefined;
  return {
    async settle(position) {
      waiting ??= { position, writers: await readWriters(sql) };
      for (let attempt = 1; waiting.writers.length > 0; attempt += 1) {
        if (attempt > maxAttempts) return undefined;
        await pause(retryMs);
        const current = new Set(await readWriters(sql));
        waiting.writers = waiting.writers.filter((id) => current.has(id));
      }
      const settled = waiting.position;
      waiting = undefined;
      return settled;
    },
  };
}

/**
 * Returns the transactions that add or remove entries. PostgreSQL locks the table before it draws the sequence of an
 * entry, and releases the lock after the entry is visible.
 */
async function readWriters(sql: Sql): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select virtualtransaction as id from pg_locks
    where locktype = 'relation' and mode = 'RowExclusiveLock' and granted
      and database = (select oid from pg_database where datname = current_database())
      and relation = 'changes'::regclass`;
  return rows.map(({ id }) => id);
}
