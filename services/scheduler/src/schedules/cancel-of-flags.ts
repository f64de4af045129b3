import { fragment, type Sql } from "@halyard/postgres";
import type { FlagPlace } from "../directory/flag-directory.ts";
import { endSchedules } from "./end-schedules.ts";

/**
 * A deleted flag cancels its schedules: what has not been sent will not be. A change that is under
 * way ends by itself, because management does not find the flag. Every replica hears of a deletion and
 * does this, so all lock in one order.
 */
export async function cancelOfFlags(sql: Sql, places: readonly FlagPlace[]): Promise<void> {
  const flagIds = places.map(({ flagId }) => flagId);
  const environmentIds = places.map(({ environmentId }) => environmentId);
  await sql.begin(async (tx) => {
    const open = await tx<{ id: string; scheduleId: string }[]>`
      select change.id, change.schedule_id as "scheduleId"
      from scheduled_changes as change
      join unnest(${flagIds}::uuid[], ${environmentIds}::uuid[]) as place (flag_id, environment_id)
        using (flag_id, environment_id)
      where change.state in ('waiting', 'armed')
      order by change.flag_id, change.environment_id, change.due_at
      for update of change`;
    await tx`
      update scheduled_changes set state = 'cancelled'
      where id = any(${open.map(({ id }) => id)}::uuid[])`;
    const latest = await tx<{ id: string }[]>`
      select schedule.id
      from schedules as schedule
      join unnest(${flagIds}::uuid[], ${environmentIds}::uuid[]) as place (flag_id, environment_id)
        using (flag_id, environment_id)
      where schedule.latest
      order by schedule.flag_id, schedule.environment_id
      for update of schedule`;
    // Reading the schedule of a flag that is gone answers nothing, so it may be cleaned up in time.
    await tx`
      update schedules set latest = false where id = any(${latest.map(({ id }) => id)}::uuid[])`;
    await endSchedules(tx, [...new Set(open.map(({ scheduleId }) => scheduleId))]);
  });
}

/** A flag that has a schedule, in an environment. */
export type ScheduledFlag = FlagPlace & {
  /** So new that the asking replica may not have heard of the flag yet. */
  isNew: boolean;
};

/** Flags with a schedule that reading it would answer, page by page in the order of their ids. */
export async function listScheduledFlags(
  sql: Sql,
  after: FlagPlace | undefined,
  limit: number,
): Promise<ScheduledFlag[]> {
  return sql<ScheduledFlag[]>`
    select flag_id as "flagId", environment_id as "environmentId",
      created_at > present_time() - interval '1 minute' as "isNew"
    from schedules
    where latest
      ${after === undefined ? fragment`` : fragment`and (flag_id, environment_id) > (${after.flagId}, ${after.environmentId})`}
    order by flag_id, environment_id
    limit ${limit}`;
}
