import { eventually } from "@halyard/testing";
import type postgres from "postgres";

/**
 * Tables that change without requests: leadership and the relay's state. Of the outbox, only the length is compared.
 * The times of last use change with every authenticated request.
 */
const restless = [
  ...["leases", "relay_streams", "outbox", "migrations"],
  ...["keys_last_seen", "environments_last_seen", "flags_last_seen"],
];

/**
 * Returns a digest of every table of every service, so that a partial change is detected. The schema of usage is
 * absent, because valid and invalid requests are both counted. Waits until the audit log contains all changes of
 * webhooks and schedules.
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
