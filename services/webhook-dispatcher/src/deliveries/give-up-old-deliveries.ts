import type { Sql } from "@halyard/postgres";

/**
 * Gives up what has waited for longer than deliveries are kept, which only a target that hangs leaves
 * so: what comes for it may be more than it ever takes. So its backlog is bounded by time, and what has
 * failed is cleaned up later as everything that has ended. What a person has asked for waits as long from
 * then on; what is being sent is looked at when it waits again.
 *
 * Ids are in the order of creation. All that are older than the bound have mostly been cleaned up, so
 * reading them by their ids costs little beside the backlog itself.
 */
export async function giveUpOldDeliveries(
  sql: Sql,
  { keptDays, atMost }: { keptDays: number; atMost: number },
): Promise<number> {
  const givenUp = await sql`
    with bound as (
      select now() - ${keptDays} * interval '1 day' as oldest
    ), old as (
      select id from deliveries, bound
      where id < (
          select (lpad(to_hex(floor(extract(epoch from oldest) * 1000)::bigint), 12, '0')
            || repeat('0', 20))::uuid
          from bound
        )
        and status in ('pending', 'retrying')
        and (not redelivery or next_attempt_at < oldest)
      order by id
      limit ${atMost}
      for update of deliveries skip locked
    )
    update deliveries set status = 'failed', next_attempt_at = null, finished_at = now(),
      redelivery = false
    from old where deliveries.id = old.id`;
  return givenUp.count;
}
