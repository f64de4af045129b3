import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { flagEventsStream } from "@halyard/contracts";
import { eventually } from "@halyard/testing";
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { connect, nanos } from "@nats-io/transport-node";
import type postgres from "postgres";
import type { ChangeStream } from "../traffic/changes.ts";

/** Tools that bring a running system into a certain state, and hold it there. */

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
 * Shortens the time for which the broker remembers message ids to 100 ms. With the default of two minutes, the broker
 * drops a second copy of a message, and hides a process that sends twice or does not tolerate a repetition.
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

/** Several times the window plus the interval at which the broker expires message ids. */
const forgottenAfterMs = 600;

/** Waits until the broker has expired the ids of all sent messages, so that it accepts copies of them. */
export const awaitForgotten = () => delay(forgottenAfterMs);

export async function deleteStream(natsUrl: string, stream: string): Promise<void> {
  await withManager(natsUrl, (manager) => manager.streams.delete(stream));
}

/** Takes the relay's lease, so that no process publishes. Returns the function that releases it. */
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

/** Ends the lease of a killed leader immediately. Otherwise the test would have to wait until it expires. */
export async function endLease(sql: postgres.Sql): Promise<void> {
  await sql`update leases set expires_at = clock_timestamp()`;
}

/** Waits until PostgreSQL has ended the connections of dead processes, and their transactions. */
export async function awaitNoConnections(
  sql: postgres.Sql,
  role: "management_service" | "webhooks_service" = "management_service",
): Promise<void> {
  await eventually(
    async () => {
      const rows = await sql`
        select from pg_stat_activity
        where datname = current_database() and usename = ${role}`;
      return rows.length === 0;
    },
    { because: `no process is connected as ${role}` },
  );
}

/** Locks a table in a mode. Returns the function that releases the lock. */
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

/** Waits until a process waits for a lock on the table that the test holds. */
export async function awaitLockWaiters(sql: postgres.Sql, table: string): Promise<void> {
  await eventually(
    async () => {
      const rows = await sql`
        select from pg_locks where relation = ${table}::regclass and not granted`;
      return rows.length > 0;
    },
    { because: `a process waits for ${table}` },
  );
}

export async function awaitAnswers(changes: ChangeStream, more: number): Promise<void> {
  const from = changes.acknowledged.length;
  await Promise.race([
    eventually(() => changes.acknowledged.length >= from + more, {
      because: `${more} more changes have a response`,
    }),
    // A rejected writer ends the wait with its error.
    changes.ended,
  ]);
}

export async function unsentRows(sql: postgres.Sql): Promise<number> {
  const [row] = await sql`select count(*)::integer as unsent from outbox where sent_at is null`;
  return row?.unsent as number;
}

/** A row that a test keeps locked, so that processes that change it stop at this point. */
export type HeldRow = {
  /** Waits until `count` processes wait for the row. */
  awaitWaiters(count?: number): Promise<void>;
  /** Ends the statements that wait for the row, as PostgreSQL does when it detects that their client has died. */
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
  // The processes that change the row belong to the service that owns the table.
  const role = `${table.split(".")[0]}_service`;
  const connection = await sql.reserve();
  await connection`begin`;
  const held = await connection`select from ${sql(table)} where id = ${id} for update`;
  if (held.count !== 1) throw new Error(`${table} has no ${id}`);
  return {
    async awaitWaiters(count = 1) {
      await eventually(async () => (await lockWaiters(sql, role)).length >= count, {
        because: `${count} processes wait for the row of ${table}`,
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

/** Returns the waiting processes that use this database. Each test file has its own database. */
async function lockWaiters(sql: postgres.Sql, role: string): Promise<number[]> {
  const rows = await sql<{ pid: number }[]>`
    select pid from pg_stat_activity
    where datname = current_database() and usename = ${role} and wait_event_type = 'Lock'`;
  return rows.map(({ pid }) => pid);
}
