import type { FlagEvent } from "@halyard/contracts";
import type { Sql, Transaction } from "@halyard/postgres";
import { pokeLanes } from "../deliveries/lanes.ts";
import { payloadOf } from "./payload.ts";

/**
 * Makes the deliveries of an event, one for each enabled webhook of its project that wants to be told
 * of such events; all of them or, when the event is known already, none. Answers how many were made.
 *
 * The webhooks are locked, shared: whoever switches one off or deletes it comes before, and there is no
 * delivery, or after, and finds the delivery to cancel it.
 */
export async function recordEvent(
  sql: Sql,
  event: FlagEvent,
  newId: () => string,
): Promise<number> {
  return sql.begin(async (tx) => {
    const dueAt = await takeIn(tx, event);
    if (dueAt === undefined) return 0;
    const webhooks = await tx<{ id: string }[]>`
      select id
      from webhooks
      where project_id = ${event.project_id} and enabled and ${event.event} = any(events)
      order by id
      for share`;
    if (webhooks.length === 0) return 0;
    const webhookIds = webhooks.map(({ id }) => id);
    await tx`
      insert into deliveries (id, webhook_id, organization_id, project_id, event_id, event, payload,
        status, created_at, next_attempt_at)
      select made.id, made.webhook_id, ${event.organization_id}, ${event.project_id}, ${event.id},
        ${event.event}, ${JSON.stringify(payloadOf(event))}, 'pending', now(), ${dueAt}
      from unnest(${webhookIds.map(() => newId())}::uuid[], ${webhookIds}::uuid[]) as made (id, webhook_id)`;
    await pokeLanes(tx, webhookIds, dueAt);
    return webhookIds.length;
  });
}

/**
 * Enters the event as known. Answers when its deliveries are due, which is when it happened, so that
 * what waits is sent in the order of events; never in the future, whatever the clock of its writer
 * says. Undefined when the event was known. Then it was seen now again: it may stand in a log that was
 * written anew and will keep it as long as any.
 */
async function takeIn(tx: Transaction, event: FlagEvent): Promise<Date | undefined> {
  const [taken] = await tx<{ dueAt: Date }[]>`
    insert into inbox (event_id, received_at)
    values (${event.id}, now())
    on conflict do nothing
    returning least(${event.timestamp}::timestamptz, now()) as "dueAt"`;
  if (taken === undefined)
    await tx`update inbox set received_at = now() where event_id = ${event.id}`;
  return taken?.dueAt;
}
