import postgres from "postgres";
import type { Bench } from "../benchmark.ts";
import type { Postgres } from "../system/backends.ts";

/** Counters of PostgreSQL: commits, WAL syncs and the time of the syncs. */
export type CommitCounts = { commits: number; syncs: number; syncMs: number; events: number };

export async function openCommitCounts(
  bench: Bench,
  { adminUrl }: Postgres,
): Promise<{ read(): Promise<CommitCounts>; awaitDisk(wait: boolean): Promise<void> }> {
  const sql = postgres(adminUrl, { max: 1, onnotice: () => undefined });
  bench.afterwards(() => sql.end());
  await sql`alter system set track_wal_io_timing = on`;
  await sql`select pg_reload_conf()`;
  return {
    async read() {
      const [row] = await sql<[CommitCounts]>`
        select (select xact_commit from pg_stat_database where datname = current_database())::float8
                 as commits,
               (select sum(fsyncs) from pg_stat_io where object = 'wal')::float8 as syncs,
               (select sum(fsync_time) from pg_stat_io where object = 'wal')::float8 as "syncMs",
               (select count(*) from management.outbox where stream = 'events')::float8 as events`;
      return row;
    },
    /** Applies to new sessions. */
    async awaitDisk(wait) {
      const role = sql("management_service");
      if (wait) await sql`alter role ${role} reset synchronous_commit`;
      else await sql`alter role ${role} set synchronous_commit = off`;
    },
  };
}
