import { readerRetentionDays } from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";
import { maxSum, statementOf } from "../counting/sum-tables.ts";

const hours = { column: "hour", before: "present_time() - ? * interval '1 day'" };
const days = { column: "day", before: "(present_time() at time zone 'UTC')::date - ?::integer" };

/**
 * The rows to delete by age. Reports show 30 days of evaluations. A row of `edges` prevents messages from counting
 * twice. Messages do not stay in their queue for that long, and at worst one message of a disconnected edge counts
 * twice. Daily requests are kept unless the operator sets a period.
 */
export const oldRows = {
  bulkAnswers: { deleteOldest: deletion("bulk_answer_hours", hours), retentionDays: 31 },
  flagHours: { deleteOldest: deletion("flag_hours", hours), retentionDays: 31 },
  variationHours: { deleteOldest: deletion("variation_hours", hours), retentionDays: 31 },
  readers: {
    deleteOldest: deletion("readers", { ...hours, column: "last_seen_at" }),
    retentionDays: readerRetentionDays,
  },
  edges: {
    deleteOldest: deletion("edges", { ...hours, column: "last_counted_at" }),
    retentionDays: 40,
  },
  /**
   * A client repeats a report within a day. A repetition that waits in the queue for another day can count twice; so
   * can one that is sent later.
   */
  reports: {
    deleteOldest: deletion("counted_reports", { ...hours, column: "counted_at" }),
    retentionDays: 2,
  },
  requestDays: {
    deleteOldest: deletion("request_days", days),
  },
  flagBaselines: { deleteOldest: deletion("flag_baselines", days), retentionDays: 31 },
};

/** Returns a function that deletes a batch of the oldest rows, and returns their number. */
function deletion(table: string, { column, before }: { column: string; before: string }) {
  const statement = statementOf(`
    delete from ${table}
    where ctid = any(array(
      select ctid from ${table}
      where ${column} < ${before}
      order by ${column}
      limit ?
      for update skip locked
    ))`);
  return async (sql: Sql, { retentionDays, atMost }: { retentionDays: number; atMost: number }) =>
    (await sql(statement, retentionDays, atMost)).count;
}

/**
 * Age after which hours are rolled up. No message adds to such an hour, because late messages count in the current
 * hour.
 */
const hourRetentionDays = 40;

/**
 * Rolls up old hours into days in UTC, and returns the number of hourly rows. One statement removes the hours and adds
 * to the days. So each request is always in exactly one of them, and a month is the sum of both. (An environment has
 * one project, so `min` selects that one.)
 */
export async function rollUpHours(sql: Sql, atMost: number): Promise<number> {
  const [row] = await sql<[{ hours: number }]>`
    with old as (
      delete from request_hours
      where ctid = any(array(
        select ctid from request_hours
        where hour < present_time() - ${hourRetentionDays} * interval '1 day'
        order by hour
        limit ${atMost}
        for update skip locked
      ))
      returning *, (hour at time zone 'UTC')::date as day
    ), added as (
      insert into request_days (organization_id, project_id, environment_id, endpoint, day, requests)
      select organization_id, min(project_id::text)::uuid, environment_id, endpoint, day,
        least(sum(requests), ${maxSum})
      from old
      group by organization_id, day, environment_id, endpoint
      order by organization_id, day, environment_id, endpoint
      on conflict (organization_id, day, environment_id, endpoint)
        do update set requests = least(request_days.requests + excluded.requests, ${maxSum})
    )
    select count(*) as hours from old`;
  return row.hours;
}
