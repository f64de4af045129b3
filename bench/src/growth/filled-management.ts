import type { Sql } from "@halyard/postgres";
import type { Bench } from "../benchmark.ts";
import { type Backends, openTables, startBackends, startNats } from "../system/backends.ts";
import { type Service, startManagement } from "../system/services.ts";
import { createTenant, type Tenant } from "../system/tenant.ts";

type Contents = {
  /** Created through management's API; none by default. */
  flags?: number;
  fill(sql: Sql, tenant: Tenant): Promise<void>;
};

export async function startFilledDatabase(bench: Bench, { flags = 0, fill }: Contents) {
  const { nats, postgres } = await startBackends(bench);
  const management = await startManagement(bench, { postgres, nats });
  const tenant = await createTenant(management.url, flags);
  await management.stop();
  await nats.stop();
  const sql = openTables(bench, postgres, "management");
  await fill(sql, tenant);
  return { postgres, tenant, sql };
}

/** With an empty NATS, management writes the whole snapshot, including the inserted rows. */
export async function startFilledManagement(
  bench: Bench,
  contents: Contents,
): Promise<Backends & { tenant: Tenant; sql: Sql; management: Service }> {
  const filled = await startFilledDatabase(bench, contents);
  const nats = await startNats(bench);
  const management = await startManagement(bench, { ...filled, nats });
  return { ...filled, nats, management };
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
    insert into flag_states (flag_id, environment_id, content, version, updated_at)
    select flags.id, environments.id,
      '{"enabled": true, "rollout_percentage": 100, "targeting_rules": []}', 1, now()
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
      insert into history (id, flag_id, environment_id, content, change_type, changed_by, changed_at,
        hash_version, previous_hash, hash)
      select uuidv7(), flags.id, ${environmentId},
        '{"enabled": true, "rollout_percentage": 100, "targeting_rules": []}', 'manual', uuidv7(), now(),
        2, '', ''
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
