import type { Sql, Transaction } from "@halyard/postgres";

/**
 * Ends those of some schedules none of whose changes is open any more: each gets the state of its last
 * change. It is a statement of its own, after the one that ended a change: whoever has waited for
 * another's lock sees here what that other has done, which it could not see in the statement that waited.
 */
export async function endSchedules(
  sql: Sql | Transaction,
  scheduleIds: readonly string[],
): Promise<void> {
  await sql`
    update schedules as schedule
    set status = last_change.state, finished_at = present_time()
    from unnest(${[...scheduleIds]}::uuid[]) as asked (id)
    cross join lateral (
      select change.state
      from scheduled_changes as change
      where change.schedule_id = asked.id
      order by change.due_at desc
      limit 1
    ) as last_change
    where schedule.id = asked.id and schedule.status = 'pending'
      and not exists (
        select from scheduled_changes as change
        where change.schedule_id = asked.id and change.state in ('waiting', 'armed', 'sent')
      )`;
}
