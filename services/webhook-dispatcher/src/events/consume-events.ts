import { checkFlagEvent, flagEventsStream } from "@halyard/contracts";
import {
  type Consumption,
  consumeQueue,
  createQueueMetrics,
  parseJson,
  type QueueMessage,
  type Verdict,
} from "@halyard/jetstream";
import { isOutage, type Sql } from "@halyard/postgres";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import { recordEvent } from "./event-store.ts";

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
  if (!checked.ok) return { setAside: checked.problem };
  if ((await recordEvent(sql, checked.value, newId)) > 0) onDeliveries();
  return "done";
}
