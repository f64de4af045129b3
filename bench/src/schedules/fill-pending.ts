import type { Sql } from "@halyard/postgres";

/** Number of projects that share the schedules, with one environment each. */
const projects = 100;

/**
 * Inserts pending schedules into the scheduler's tables up to a number, each of another flag, due within a
 * year. The flags do not exist; schedulers look for schedules of deleted flags only when they start.
 */
export async function fillPending(sql: Sql, wanted: number): Promise<void> {
  await sql.begin(async (tx) => {
    // Disables foreign key checks, which take long for a million rows.
    await tx`set local session_replication_role = replica`;
    await tx`
      with pending as materialized (
        select uuidv7() as id, uuidv7() as schedule_id, uuidv7() as flag_id,
          md5('project ' || number % ${projects})::uuid as project_id,
          md5('environment ' || number % ${projects})::uuid as environment_id,
          date_trunc('milliseconds',
            present_time() + interval '1 day' + random() * interval '364 days') as due_at
        from generate_series(
          (select count(*) from scheduled_changes where state = 'armed') + 1, ${wanted}::bigint
        ) as number
      ), schedule as (
        insert into schedules (id, organization_id, project_id, environment_id, flag_id, enable_at,
          disable_at, status, latest, created_at, created_by)
        select schedule_id, project_id, project_id, environment_id, flag_id, due_at, null, 'pending',
          true, present_time() - interval '1 hour', project_id
        from pending
      )
      insert into scheduled_changes (id, schedule_id, flag_id, environment_id, action, due_at, state)
      select id, schedule_id, flag_id, environment_id, 'enable', due_at, 'armed'
      from pending`;
  });
  await sql`vacuum analyze schedules, scheduled_changes`;
}
