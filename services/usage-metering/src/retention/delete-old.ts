import type { Sql } from "@halyard/postgres";

/** Deletes what nobody asks for any more, in batches; each answers how many rows went. */

/** One day more than is shown. */
const hoursKeptDays = 31;

export async function deleteOldBulkAnswers(sql: Sql, atMost: number): Promise<number> {
  const deleted = await sql`
    delete from bulk_answer_hours
    using (
      select environment_id, hour from bulk_answer_hours
      where hour < present_time() - ${hoursKeptDays} * interval '1 day'
      order by hour
      limit ${atMost}
      for update skip locked
    ) as oldest
    where bulk_answer_hours.environment_id = oldest.environment_id
      and bulk_answer_hours.hour = oldest.hour`;
  return deleted.count;
}

export async function deleteOldFlagHours(sql: Sql, atMost: number): Promise<number> {
  const deleted = await sql`
    delete from flag_hours
    using (
      select flag_id, environment_id, hour from flag_hours
      where hour < present_time() - ${hoursKeptDays} * interval '1 day'
      order by hour
      limit ${atMost}
      for update skip locked
    ) as oldest
    where flag_hours.flag_id = oldest.flag_id
      and flag_hours.environment_id = oldest.environment_id
      and flag_hours.hour = oldest.hour`;
  return deleted.count;
}

/**
 * An edge that lives tells something every few days at least, or nobody uses it; one that was cut off
 * comes back with a single message whose fate it does not know. Who has not been heard of for so long is
 * not waited for, and forgetting costs, at worst, that one message counted twice. It is kept far longer
 * than a message waits in its queue, because what was counted may still be there, unacknowledged.
 */
const edgesKeptDays = 40;

export async function deleteOldEdges(sql: Sql, atMost: number): Promise<number> {
  const deleted = await sql`
    delete from edges
    using (
      select edge from edges
      where last_counted_at < present_time() - ${edgesKeptDays} * interval '1 day'
      order by last_counted_at
      limit ${atMost}
      for update skip locked
    ) as oldest
    where edges.edge = oldest.edge`;
  return deleted.count;
}

/** Requests by day, which are kept for good unless the operator sets a period. */
export async function deleteOldRequestDays(
  sql: Sql,
  { keptDays, atMost }: { keptDays: number; atMost: number },
): Promise<number> {
  const deleted = await sql`
    delete from request_days
    using (
      select organization_id, day, environment_id, endpoint from request_days
      where day < (present_time() at time zone 'UTC')::date - ${keptDays}::integer
      order by day
      limit ${atMost}
      for update skip locked
    ) as oldest
    where request_days.organization_id = oldest.organization_id
      and request_days.day = oldest.day
      and request_days.environment_id = oldest.environment_id
      and request_days.endpoint = oldest.endpoint`;
  return deleted.count;
}
