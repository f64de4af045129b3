import { eventually } from "@halyard/testing";
import type postgres from "postgres";

/**
 * Leadership and the relay's bookkeeping go on by themselves; of the outbox only the length counts. When
 * something was last seen is noted of every request whose key works.
 */
const restless = [
  ...["leases", "relay_streams", "outbox", "migrations"],
  ...["keys_last_seen", "environments_last_seen", "flags_last_seen"],
];

/**
 * What every table of every service holds, as one digest each: nothing half done goes unnoticed. But
 * requests are counted as used whether they were right or wrong, so the schema of usage is left out. Waits until
 * the audit log contains all changes of webhooks and schedules.
 */
export async function databaseContent(sql: postgres.Sql): Promise<Record<string, string>> {
  await eventually(async () => {
    const rows = await sql`
      select from scheduler.audit_outbox union all select from webhooks.audit_outbox`;
    return rows.length === 0;
  });
  const tables = await sql<{ schema: string; name: string }[]>`
    select schemaname as schema, tablename as name from pg_tables
    where schemaname in ('management', 'scheduler', 'webhooks') and tablename <> all(${restless})
    order by schemaname, tablename`;
  const content: Record<string, string> = {};
  for (const { schema, name } of tables) {
    const [row] = await sql<{ digest: string }[]>`
      select count(*) || ' ' || coalesce(md5(string_agg(t::text, '|' order by t::text)), '') as digest
      from ${sql(schema)}.${sql(name)} as t`;
    content[`${schema}.${name}`] = row?.digest as string;
  }
  const [outbox] = await sql<{ rows: number }[]>`
    select count(*)::integer as rows from management.outbox`;
  content.outbox = String(outbox?.rows);
  return content;
}
