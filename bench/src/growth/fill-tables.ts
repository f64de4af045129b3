import type { Sql } from "@halyard/postgres";
import postgres from "postgres";
import type { Bench } from "../benchmark.ts";
import type { Postgres } from "../system/backends.ts";
import type { Tenant } from "../system/tenant.ts";

/** Connects as a superuser to management's schema. */
export function openManagementTables(bench: Bench, { adminUrl }: Postgres): Sql {
  const sql = postgres(adminUrl, {
    max: 1,
    onnotice: () => undefined,
    connection: { search_path: "management" },
  });
  bench.afterwards(() => sql.end());
  return sql as unknown as Sql;
}

/** Inserts flags into the tables. They reach the snapshot with its next rebuild. */
export async function insertFlags(sql: Sql, { projectId }: Tenant, count: number): Promise<void> {
  await sql`
    insert into flags (id, project_id, key, name, description, type, version, last_event_at,
      created_at, updated_at)
    select uuidv7(), ${projectId}, 'inserted-' || number, 'Inserted ' || number, '', 'release', 1,
      now(), now(), now()
    from generate_series(1, ${count}::integer) as number`;
  await insertStates(sql, projectId);
}

export async function insertEnvironments(
  sql: Sql,
  { projectId }: Tenant,
  count: number,
): Promise<void> {
  await sql`
    insert into environments (id, project_id, name, created_at)
    select uuidv7(), ${projectId}, 'inserted-' || number, now()
    from generate_series(1, ${count}::integer) as number`;
  await insertStates(sql, projectId);
}

async function insertStates(sql: Sql, projectId: string): Promise<void> {
  await sql`
    insert into flag_states (flag_id, environment_id, enabled, rollout_percentage, targeting_rules,
      version, updated_at)
    select flags.id, environments.id, true, 100, '[]', 1, now()
    from flags
    join environments using (project_id)
    where project_id = ${projectId}
    on conflict do nothing`;
  await sql`analyze flags, flag_states, environments`;
}

/** Inserts keys without known secrets. They reach the snapshot with its next rebuild. */
export async function insertKeys(
  sql: Sql,
  { environmentId }: Tenant,
  count: number,
): Promise<void> {
  await sql`
    insert into api_keys (id, secret_sha256, kind, name, environment_id, user_id,
      environment_only, version, created_at)
    select translate(left(md5(number::text), 16), '0189', 'wxyz'),
      encode(sha256(number::text::bytea), 'hex'), 'client', 'inserted', ${environmentId},
      (select user_id from api_keys where environment_id = ${environmentId} limit 1),
      false, 1, now()
    from generate_series(1, ${count}::integer) as number`;
  await sql`analyze api_keys`;
}

/** Inserts history and audit rows of the tenant's flags, without the hashes of the history. */
export async function insertRecords(
  sql: Sql,
  { projectId, environmentId }: Tenant,
  count: number,
): Promise<void> {
  await sql.begin(async (tx) => {
    await tx`set local session_replication_role = replica`;
    await tx`
      insert into history (id, flag_id, environment_id, enabled, rollout_percentage,
        targeting_rules, change_type, changed_by, changed_at, previous_hash, hash)
      select uuidv7(), flags.id, ${environmentId}, true, 100, '[]', 'manual', uuidv7(), now(), '', ''
      from generate_series(1, ${count}::integer / (select count(*) from flags)) as number, flags`;
    await tx`
      insert into changes (id, project_id, environment_id, flag_id, flag_key, action, cause,
        actor_id, actor_email, changed_at)
      select uuidv7(), ${projectId}, ${environmentId}, flags.id, flags.key, 'state', 'manual',
        uuidv7(), 'ada@example.com', now()
      from generate_series(1, ${count}::integer / (select count(*) from flags)) as number, flags`;
  });
  await sql`analyze history, changes`;
}
