import {
  type Checked,
  checkAudienceEvent,
  checkChangeRequestEvent,
  checkFlagEvent,
  checkProtectionEvent,
  checkUserErased,
  type DomainEvent,
  flagEventsStream,
} from "@halyard/contracts";
import {
  type Consumption,
  consumeQueue,
  createQueueMetrics,
  parseJson,
  type QueueMessage,
  type Verdict,
  type VerifyMessage,
} from "@halyard/jetstream";
import { isOutage, type Sql, type Transaction } from "@halyard/postgres";
import { currentSpan } from "@halyard/tracing";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import { pokeLanes } from "../deliveries/delivery-store.ts";
import { payloadOf } from "../sending/payload.ts";
import { readActor, recordErasure } from "./erasures.ts";

/**
 * Options of the consumer, which creates deliveries for the events of the stream. An event is acknowledged after its
 * deliveries are committed. An event is received again if the process fails between the two, or if the stream is
 * refilled. It then creates no second deliveries.
 */
type ConsumeEventsOptions = {
  connection: NatsConnection;
  sql: Sql;
  verify: VerifyMessage;
  newId: () => string;
  /** Called when new deliveries are due. */
  onDeliveries: () => void;
  metrics: Registry;
  logger: Logger;
};

/** Maximum number of concurrent events. It leaves half of a default-sized connection pool to recording attempts. */
const eventsAtOnce = 5;

export function consumeEvents(options: ConsumeEventsOptions): Consumption {
  return consumeQueue({
    connection: options.connection,
    stream: flagEventsStream.name,
    consumer: flagEventsStream.webhookConsumer,
    subject: ">",
    concurrency: eventsAtOnce,
    // A compromised service can have signed messages of other streams delivered into this one.
    verify: (message) =>
      flagEventsStream.allSubjects.includes(message.subject) ? options.verify(message) : "foreign",
    handle: (message) => takeEvent(options, message),
    isOutage,
    metrics: createQueueMetrics(options.metrics),
    logger: options.logger,
  });
}

/** Returns the check of the events of a subject. Its first part is what the events are about. */
function checkOf(subject: string): (message: unknown) => Checked<DomainEvent> {
  const [kind = ""] = subject.split(".");
  return otherChecks[kind] ?? checkFlagEvent;
}

const otherChecks: Readonly<Record<string, (message: unknown) => Checked<DomainEvent>>> = {
  audience: checkAudienceEvent,
  change_request: checkChangeRequestEvent,
  environment: checkProtectionEvent,
};

async function takeEvent(
  { sql, newId, onDeliveries }: ConsumeEventsOptions,
  { subject, payload }: QueueMessage,
): Promise<Verdict> {
  if (subject === flagEventsStream.erasureSubject) {
    const erased = checkUserErased(parseJson(payload));
    if (!erased.ok) return { deadLetter: erased.problem };
    await recordErasure(sql, erased.value);
    return "done";
  }
  const checked = checkOf(subject)(parseJson(payload));
  if (!checked.ok) return { deadLetter: checked.problem };
  if ((await recordEvent(sql, checked.value, newId)) > 0) onDeliveries();
  return "done";
}

/**
 * Creates the deliveries of an event: one for each enabled webhook of its project that subscribes to it. Creates none
 * if the event is already known. Returns their number.
 *
 * The webhooks are locked in share mode. A transaction that disables or deletes one commits either before, and then
 * there is no delivery, or after, and then it cancels the delivery.
 */
export async function recordEvent(
  sql: Sql,
  event: DomainEvent,
  newId: () => string,
): Promise<number> {
  const trace = currentSpan()?.context;
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
    const payload = payloadOf({ ...event, triggered_by: await readActor(tx, event) });
    await tx`
      insert into deliveries (id, webhook_id, organization_id, project_id, event_id, event, payload,
        status, created_at, next_attempt_at, traceparent, tracestate)
      select made.id, made.webhook_id, ${event.organization_id}, ${event.project_id}, ${event.id},
        ${event.event}, ${JSON.stringify(payload)}, 'pending', now(), ${dueAt},
        ${trace?.traceparent ?? null}::text, ${trace?.tracestate ?? null}::text
      from unnest(${webhookIds.map(() => newId())}::uuid[], ${webhookIds}::uuid[]) as made (id, webhook_id)`;
    await pokeLanes(tx, webhookIds, dueAt);
    return webhookIds.length;
  });
}

/**
 * Inserts the event into the inbox. Returns the time at which its deliveries are due, or undefined if the event is
 * known. The due time is the time of the event, so that a backlog is sent in the order of events. It is never in the
 * future, even if the clock of the event's writer is ahead.
 *
 * For a known event, the time of receipt is updated: a refilled stream keeps the event for another full period.
 */
async function takeIn(tx: Transaction, event: DomainEvent): Promise<Date | undefined> {
  const [taken] = await tx<{ dueAt: Date }[]>`
    insert into inbox (event_id, received_at)
    values (${event.id}, now())
    on conflict do nothing
    returning least(${event.timestamp}::timestamptz, now()) as "dueAt"`;
  if (taken === undefined)
    await tx`update inbox set received_at = now() where event_id = ${event.id}`;
  return taken?.dueAt;
}
