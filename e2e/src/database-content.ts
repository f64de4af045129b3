import type postgres from "postgres";

/** What every table of management holds, as one digest each: nothing half done goes unnoticed. */
export async function databaseContent(sql: postgres.Sql): Promise<Record<string, string>> {
  // Leadership and the relay's bookkeeping go on by themselves.
  const tables = await sql<{ name: string }[]>`
    select tablename as name from pg_tables
    where schemaname = 'management'
      and tablename not in ('leases', 'relay_streams', 'outbox', 'pgmigrations')
    order by tablename`;
  const content: Record<string, string> = {};
  for (const { name } of tables) {
    const [row] = await sql<{ digest: string }[]>`
      select count(*) || ' ' || coalesce(md5(string_agg(t::text, '|' order by t::text)), '') as digest
      from ${sql(name)} as t`;
    content[name] = row?.digest as string;
  }
  const [outbox] = await sql<{ rows: number }[]>`select count(*)::integer as rows from outbox`;
  content.outbox = String(outbox?.rows);
  return content;
}
