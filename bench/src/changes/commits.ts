import { setTimeout as delay } from "node:timers/promises";
import { connectPostgres } from "@halyard/postgres";
import { pino } from "pino";
import type { Bench } from "../benchmark.ts";
import { openTables, type Postgres } from "../system/backends.ts";

/** Counters of PostgreSQL: commits, WAL syncs and the time of the syncs. */
type CommitCounts = { commits: number; syncs: number; syncMs: number; events: number };

export async function openCommitCounts(
  bench: Bench,
  postgres: Postgres,
): Promise<{ read(): Promise<CommitCounts>; doNotAwaitDisk(): Promise<void> }> {
  const sql = openTables(bench, postgres, "management");
  await sql`alter system set track_wal_io_timing = on`;
  await sql`select pg_reload_conf()`;
  return {
    async read() {
      const [row] = await sql<[CommitCounts]>`
        select (select xact_commit from pg_stat_database where datname = current_database())::float8
                 as commits,
               (select sum(fsyncs) from pg_stat_io where object = 'wal')::float8 as syncs,
               (select sum(fsync_time) from pg_stat_io where object = 'wal')::float8 as "syncMs",
               (select count(*) from outbox where stream = 'events')::float8 as events`;
      return row;
    },
    /** Applies to new sessions. */
    async doNotAwaitDisk() {
      await sql`alter role management_service set synchronous_commit = off`;
    },
  };
}

const maxConnections = 20;

/** Measures single-row updates per second. No service that stores its changes in PostgreSQL can be faster. */
export async function measureBareUpdates(options: {
  postgres: Postgres;
  flagIds: readonly string[];
  writers: number;
  measureMs: number;
}): Promise<{ perSecond: number }> {
  const { postgres, flagIds, measureMs } = options;
  const logger = pino({ level: "silent" });
  const sql = connectPostgres({
    ...{ url: postgres.urls.management, name: "bench", maxConnections, logger },
  });
  let [next, updates, ending] = [0, 0, false];
  async function write(): Promise<void> {
    while (!ending) {
      next += 1;
      const id = flagIds[next % flagIds.length] as string;
      await sql`update flags set updated_at = clock_timestamp() where id = ${id}`;
      updates += 1;
    }
  }
  const beganMs = performance.now();
  const writers = Array.from({ length: options.writers }, write);
  await delay(measureMs);
  const perSecond = (updates / (performance.now() - beganMs)) * 1e3;
  ending = true;
  await Promise.all(writers);
  await sql.end();
  return { perSecond };
}
