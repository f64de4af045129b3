import type { Sql } from "@halyard/postgres";

/**
 * Stores once a day how many evaluations of each flag were counted before this day. The statement may run at any time of
 * the day, because it subtracts the hours of the day, which counting writes together with the total. Concurrent replicas
 * insert the same rows. Returns the number of rows.
 */
export async function addBaselines(sql: Sql): Promise<number> {
  const added = await sql`
    with today as (select (present_time() at time zone 'UTC')::date as day),
    counted_today as (
      select environment_id, flag_id, sum(flag_hours.evaluations)::bigint as evaluations
      from flag_hours, today
      where hour >= today.day::timestamp at time zone 'UTC'
      group by environment_id, flag_id
    )
    insert into flag_baselines (environment_id, day, flag_id, evaluations)
    select environment_id, today.day, flag_id,
      flags_last_seen.evaluations - coalesce(counted_today.evaluations, 0)
    from today
    cross join flags_last_seen
    left join counted_today using (environment_id, flag_id)
    where not exists (select from flag_baselines where flag_baselines.day = today.day)
    order by environment_id, flag_id
    on conflict do nothing`;
  return added.count;
}
