import type { ScheduleResolved } from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";
import type { DueChange } from "./send-due.ts";

/**
 * Claims due changes, the longest overdue first, and marks them as sent. Concurrent replicas claim different
 * changes. The caller sends them after this statement has committed, so an unmarked change was never sent.
 *
 * A sent change without an outcome is due again after 30 seconds. Each further sending doubles this time, up to about an
 * hour, so that an outage of management does not fill the queue with copies.
 */
export async function claimDue(sql: Sql, limit: number): Promise<ClaimedChange[]> {
  // A cached generic plan assumes that the limit is a tenth of the armed changes, and scans both tables to join them.
  return sql.unprepared<ClaimedChange[]>(
    `with due as (
      select id
      from scheduled_changes
      where state in ('armed', 'sent')
        and coalesce(send_again_at, due_at) <= (select present_time())
      order by coalesce(send_again_at, due_at), id
      limit $1
      for update skip locked
    ), claimed as (
      update scheduled_changes as change
      set state = 'sent', send_count = send_count + 1,
        send_again_at = present_time() + 2 ^ least(send_count, 7) * interval '30 seconds'
      from due
      where change.id = due.id
      returning change.*
    )
    select change.id, change.schedule_id as "scheduleId", change.action, change.due_at as "dueAt",
      schedule.organization_id as "organizationId", schedule.project_id as "projectId",
      schedule.environment_id as "environmentId", schedule.flag_id as "flagId",
      schedule.created_by as "userId", change.send_count as "sendCount"
    from claimed as change
    join schedules as schedule on schedule.id = change.schedule_id
    order by change.due_at, change.id`,
    [limit],
  );
}

type ClaimedChange = DueChange & {
  /** Number of claims, including this one. */
  sendCount: number;
};

/** Returns the time until the next change is due, in milliseconds, or undefined if none is armed or sent. */
export async function msUntilNextDue(sql: Sql): Promise<number | undefined> {
  const [row] = await sql<[{ ms: number | null }]>`
    select (extract(epoch from (
      min(coalesce(send_again_at, due_at)) - present_time())) * 1000)::float8 as ms
    from scheduled_changes
    where state in ('armed', 'sent')`;
  return row.ms ?? undefined;
}

/** Returns the seconds since the due time of the longest overdue change, or 0 if none is overdue. */
export async function overdueSeconds(sql: Sql): Promise<number> {
  const [row] = await sql<[{ seconds: number }]>`
    select greatest(0, extract(epoch from present_time() - min(due_at)))::float8 as seconds
    from scheduled_changes
    where state in ('armed', 'sent')`;
  return row.seconds;
}

export type Settled = {
  id: string;
  scheduleId: string;
  dueAt: Date;
  appliedAt: Date | null;
  /** The effect on the schedule: its other change was armed, it ended with this change, or neither. */
  effect: "armed" | "ended" | null;
};

/**
 * Records the outcomes of sent changes and arms the changes that wait for them, in one statement. Otherwise a crash
 * in between could enable a flag and never disable it. A schedule without another change ends.
 *
 * Of a schedule, only one change can be sent. An outcome that is already recorded is not in the result, because
 * messages can arrive twice.
 */
export async function settle(
  sql: Sql,
  resolved: readonly ScheduleResolved[],
): Promise<readonly Settled[]> {
  return sql<Settled[]>`
    with given as (
      select * from unnest(
        ${resolved.map(({ id }) => id)}::uuid[],
        ${resolved.map(({ outcome }) => outcome)}::text[],
        ${resolved.map(({ applied_at: appliedAt }) => appliedAt)}::timestamptz[],
        ${resolved.map(({ reason }) => reason)}::text[]
      ) as given (id, outcome, applied_at, reason)
    ), settled as (
      update scheduled_changes as change
      set state = given.outcome, applied_at = given.applied_at, reason = given.reason
      from given
      where change.id = given.id and change.state = 'sent'
      returning change.id, change.schedule_id, change.due_at, change.applied_at, given.outcome, not exists (
        select from scheduled_changes as other
        where other.schedule_id = change.schedule_id and other.id <> change.id
      ) as is_whole
    ), next as (
      -- A cancelled change means that the flag was deleted.
      update scheduled_changes as change
      set state = case when settled.outcome = 'cancelled' then 'cancelled' else 'armed' end
      from settled
      where change.schedule_id = settled.schedule_id and change.state = 'waiting'
      returning change.schedule_id, change.state
    ), ended as (
      update schedules as schedule
      set status = settled.outcome, finished_at = present_time()
      from settled
      where schedule.id = settled.schedule_id and settled.is_whole
    )
    select id, schedule_id as "scheduleId", due_at as "dueAt", applied_at as "appliedAt",
      case
        when is_whole then 'ended'
        when exists (
          select from next where next.schedule_id = settled.schedule_id and next.state = 'armed'
        ) then 'armed'
      end as "effect"
    from settled`;
}
