import type { AuditRecorded } from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";

/** A row of the outbox that is not published. Rows are read in the order of their ids, which is chronological. */
export type UnsentRow = { id: string; message: AuditRecorded; wasLost: boolean };

export type SentRow = { id: string; streamCreatedAt: string; sequence: number };

export async function listUnsent(sql: Sql, limit: number): Promise<UnsentRow[]> {
  return sql<UnsentRow[]>`
    select id, message, stream_created_at is not null as "wasLost"
    from audit_outbox
    where stream_sequence is null
    order by id
    limit ${limit}`;
}

export async function listSent(sql: Sql, limit: number): Promise<SentRow[]> {
  return sql<SentRow[]>`
    select id, stream_created_at as "streamCreatedAt", stream_sequence as sequence
    from audit_outbox
    where stream_sequence is not null
    order by id
    limit ${limit}`;
}

export async function markSent(sql: Sql, row: SentRow): Promise<void> {
  await sql`
    update audit_outbox
    set stream_created_at = ${row.streamCreatedAt}, stream_sequence = ${row.sequence}
    where id = ${row.id}`;
}

export async function deleteRows(sql: Sql, rows: readonly SentRow[]): Promise<void> {
  if (rows.length === 0) return;
  await sql`delete from audit_outbox where id = any(${rows.map(({ id }) => id)}::uuid[])`;
}

/** Marks rows as lost, so that they are published again. */
export async function markLost(sql: Sql, rows: readonly SentRow[]): Promise<void> {
  if (rows.length === 0) return;
  await sql`
    update audit_outbox set stream_sequence = null
    where id = any(${rows.map(({ id }) => id)}::uuid[])`;
}
