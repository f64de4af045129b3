import type { Transaction } from "@halyard/postgres";

/**
 * Says that webhooks have something to be done at a time, if nothing is due there earlier. This goes
 * last in a transaction: the row is locked until its end, so whoever is just working out when the
 * webhook is due next either sees these deliveries or is waited for. Webhooks in the order of their ids,
 * so that two transactions never wait for each other.
 */
export async function pokeLanes(
  tx: Transaction,
  webhookIds: readonly string[],
  dueAt: Date,
): Promise<void> {
  await tx`
    with poked as (
      select webhook_id from lanes where webhook_id = any(${[...webhookIds]}::uuid[])
      order by webhook_id
      for update
    )
    update lanes set due_at = least(coalesce(due_at, ${dueAt}), ${dueAt})
    from poked where lanes.webhook_id = poked.webhook_id`;
}
