import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { flagEventsStream } from "@halyard/contracts";
import { eventually } from "@halyard/testing";
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { connect, nanos } from "@nats-io/transport-node";
import type postgres from "postgres";
import type { ChangeStream } from "../traffic/changes.ts";

/** What tests do to a running system to bring it to one certain moment, and to hold it there. */

export async function withManager<T>(
  natsUrl: string,
  work: (manager: JetStreamManager) => Promise<T>,
): Promise<T> {
  const connection = await connect({ servers: natsUrl });
  try {
    return await work(await jetstreamManager(connection));
  } finally {
    await connection.close();
  }
}

/**
 * Has the broker forget message ids almost at once. Otherwise it would drop a second copy of a message
 * for two minutes, and whoever sends twice, or bears no repetition, would pass.
 */
export async function forgetMessageIdsAtOnce(
  natsUrl: string,
  stream = flagEventsStream.name,
): Promise<void> {
  const shortest = nanos(100);
  await withManager(natsUrl, (manager) =>
    manager.streams.update(stream, { duplicate_window: shortest }),
  );
}

/** The window and the pause between two times that the broker looks through it, many times over. */
const forgottenAfterMs = 600;

/** Waits until the broker has forgotten what was sent, so that a copy of it gets through. */
export const awaitForgotten = () => delay(forgottenAfterMs);

export async function deleteStream(natsUrl: string, stream: string): Promise<void> {
  await withManager(natsUrl, (manager) => manager.streams.delete(stream));
}

/** Takes the relay's lease away from everybody, so that nothing is published, until it is given back. */
export async function takeLease(sql: postgres.Sql): Promise<() => Promise<void>> {
  const holder = randomUUID();
  await sql`
    insert into leases (name, holder, expires_at)
    values ('relay', ${holder}, clock_timestamp() + interval '1 hour')
    on conflict (name) do update
      set holder = excluded.holder, expires_at = excluded.expires_at`;
  return async () => {
    await sql`delete from leases where holder = ${holder}`;
  };
}

/** Ends the lease of a leader that was killed, which would otherwise be waited for. */
export async function endLease(sql: postgres.Sql): Promise<void> {
  await sql`update leases set expires_at = clock_timestamp()`;
}

/** Waits until PostgreSQL has noticed that the processes of before are gone, and ended what they did. */
export async function awaitNoConnections(
  sql: postgres.Sql,
  role: "management_runtime" | "webhooks_runtime" = "management_runtime",
): Promise<void> {
  await eventually(
    async () => {
      const rows = await sql`
        select from pg_stat_activity
        where datname = current_database() and usename = ${role}`;
      return rows.length === 0;
    },
    { because: `nobody is connected as ${role}` },
  );
}

/** Locks a table against whatever conflicts with the mode, until it is released. */
export async function lockTable(
  sql: postgres.Sql,
  table: string,
  mode: "share" | "access exclusive",
): Promise<() => Promise<void>> {
  const connection = await sql.reserve();
  await connection.unsafe(`begin; lock table ${table} in ${mode} mode`);
  return async () => {
    await connection.unsafe("commit");
    connection.release();
  };
}

/** Waits until somebody waits for a lock that a test holds. */
export async function awaitLockWaiters(sql: postgres.Sql, table: string): Promise<void> {
  await eventually(
    async () => {
      const rows = await sql`
        select from pg_locks where relation = ${table}::regclass and not granted`;
      return rows.length > 0;
    },
    { because: `somebody waits for ${table}` },
  );
}

export async function awaitAnswers(changes: ChangeStream, more: number): Promise<void> {
  const from = changes.acknowledged.length;
  await Promise.race([
    eventually(() => changes.acknowledged.length >= from + more, {
      withinMs: 20_000,
      because: `${more} more changes are answered`,
    }),
    // A writer that was refused ends the waiting with its error.
    changes.ended,
  ]);
}

export async function unsentRows(sql: postgres.Sql): Promise<number> {
  const [row] = await sql`select count(*)::integer as unsent from outbox where sent_at is null`;
  return row?.unsent as number;
}

/** A row that a test keeps locked, so that whoever wants to change it is brought to a stand there. */
export type HeldRow = {
  /** Waits until so many want the row. */
  awaitWaiters(count?: number): Promise<void>;
  /** Ends the statements that wait for it, as PostgreSQL does when it finds that their client is gone. */
  endWaiters(): Promise<void>;
  release(): Promise<void>;
};

export async function holdRow(
  sql: postgres.Sql,
  table:
    | "management.flags"
    | "scheduler.scheduled_changes"
    | "webhooks.webhooks"
    | "webhooks.deliveries",
  id: string,
): Promise<HeldRow> {
  // Those who want the row are of the service whose table it is.
  const role = `${table.split(".")[0]}_runtime`;
  const connection = await sql.reserve();
  await connection`begin`;
  const held = await connection`select from ${sql(table)} where id = ${id} for update`;
  if (held.count !== 1) throw new Error(`${table} has no ${id}`);
  return {
    async awaitWaiters(count = 1) {
      await eventually(async () => (await lockWaiters(sql, role)).length >= count, {
        because: `${count} wait for the row of ${table}`,
      });
    },
    async endWaiters() {
      for (const pid of await lockWaiters(sql, role))
        await sql`select pg_terminate_backend(${pid})`;
    },
    async release() {
      await connection`commit`;
      connection.release();
    },
  };
}

/** Of the processes that use this database; each test file has one of its own. */
async function lockWaiters(sql: postgres.Sql, role: string): Promise<number[]> {
  const rows = await sql<{ pid: number }[]>`
    select pid from pg_stat_activity
    where datname = current_database() and usename = ${role} and wait_event_type = 'Lock'`;
  return rows.map(({ pid }) => pid);
}
