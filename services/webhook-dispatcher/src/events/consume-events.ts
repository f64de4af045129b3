import { checkFlagEvent, type FlagEvent, flagEventsStream } from "@halyard/contracts";
import {
  type Consumption,
  consumeQueue,
  createQueueMetrics,
  parseJson,
  type QueueMessage,
  type Verdict,
} from "@halyard/jetstream";
import { isOutage, type Sql, type Transaction } from "@halyard/postgres";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import { pokeLanes } from "../deliveries/delivery-store.ts";
import { payloadOf } from "../sending/payload.ts";

/**
 * Reads the log of events and makes deliveries of them. The log keeps what was read; acknowledging an
 * event moves the place up to which this service has read, and is done after its deliveries are
 * committed. What comes again, because the process died in between or the log was written anew, makes
 * none a second time.
 */
export type ConsumeEventsOptions = {
  connection: NatsConnection;
  sql: Sql;
  newId: () => string;
  /** Deliveries were made, which are due. */
  onDeliveries: () => void;
  metrics: Registry;
  logger: Logger;
};

/** Half of the smallest pool: an event is a short transaction, and attempts are recorded meanwhile. */
const eventsAtOnce = 5;

export function consumeEvents(options: ConsumeEventsOptions): Consumption {
  return consumeQueue({
    connection: options.connection,
    stream: flagEventsStream.name,
    consumer: flagEventsStream.webhookConsumer,
    subject: ">",
    concurrency: eventsAtOnce,
    handle: (message) => takeEvent(options, message),
    isOutage,
    metrics: createQueueMetrics(options.metrics),
    logger: options.logger,
  });
}

async function takeEvent(
  { sql, newId, onDeliveries }: ConsumeEventsOptions,
  { payload }: QueueMessage,
): Promise<Verdict> {
  const checked = checkFlagEvent(parseJson(payload));
  if (!checked.ok) return { deadLetter: checked.problem };
  if ((await recordEvent(sql, checked.value, newId)) > 0) onDeliveries();
  return "done";
}

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
