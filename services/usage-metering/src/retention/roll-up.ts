import type { Sql } from "@halyard/postgres";

/**
 * Makes days of UTC of hours that are long past. Hours leave and days grow in one statement, so every
 * request is in exactly one of them at each moment, and a month is the sum of both. An hour that is still
 * added to is far from being so old: what is told late counts in the present hour. (An environment has one
 * project, so that the least of its projects is the one.)
 */
const hoursKeptDays = 40;

/** Rolls up some hours; answers how many rows of them there were. */
export async function rollUpHours(sql: Sql, atMost: number): Promise<number> {
  const [row] = await sql<[{ hours: number }]>`
    with old as (
      delete from request_hours
      using (
        select organization_id, hour, environment_id, endpoint from request_hours
        where hour < present_time() - ${hoursKeptDays} * interval '1 day'
        order by hour
        limit ${atMost}
        for update skip locked
      ) as oldest
      where request_hours.organization_id = oldest.organization_id
        and request_hours.hour = oldest.hour
        and request_hours.environment_id = oldest.environment_id
        and request_hours.endpoint = oldest.endpoint
      returning request_hours.*
    ), added as (
      insert into request_days (organization_id, project_id, environment_id, endpoint, day, requests)
      select organization_id, min(project_id::text)::uuid, environment_id, endpoint, day, sum(requests)
      from (select *, (hour at time zone 'UTC')::date as day from old) as hours
      group by organization_id, day, environment_id, endpoint
      order by organization_id, day, environment_id, endpoint
      on conflict (organization_id, day, environment_id, endpoint)
        do update set requests = request_days.requests + excluded.requests
    )
    select count(*) as hours from old`;
  return row.hours;
}
