import { checkScheduleDue, type ScheduleDue, scheduleStream } from "@halyard/contracts";
import { type Consumption, consumeJson, type QueueMetrics } from "@halyard/jetstream";
import { isOutage, type Sql } from "@halyard/postgres";
import type { JetStreamClient } from "@nats-io/jetstream";
import { createWriter } from "../outbox/write.ts";
import type { Broker } from "../relay/broker.ts";
import { queueStatus } from "../relay/records.ts";
import { createDueChanges, type Outcome, resolvedMessage, verdictOf } from "./due-changes.ts";

/**
 * How much of the connections to PostgreSQL due changes take, when many come due at once. The larger
 * part is left to the requests, for whose answers somebody waits; and a few transactions side by side
 * already keep PostgreSQL busy.
 */
const shareOfConnections = 0.4;

/**
 * Takes changes that have come due from the queue, has them made, and tells the scheduler what became of
 * them. A message leaves the queue only when the broker has that answer: whoever dies in between leaves
 * it there, and who takes it up again finds the outcome and tells it again.
 *
 * Unlike requests, due changes do not wait until they are in effect, so that a burst of thousands is not slowed down.
 */
export function consumeDueChanges(options: {
  sql: Sql;
  broker: Broker;
  wakeRelay: () => void;
  now: () => Date;
  newId: () => string;
  metrics: QueueMetrics;
}): Consumption {
  const { sql, broker, now, newId, metrics } = options;
  const { connection, client, logger } = broker;
  const writer = createWriter({ sql, newId, wakeRelay: options.wakeRelay });
  const dueChanges = createDueChanges({ writer, now, newId });
  return consumeJson({
    ...{ connection, metrics, logger, isOutage },
    stream: scheduleStream.name,
    consumer: scheduleStream.due.consumer,
    subject: scheduleStream.due.subject,
    concurrency: Math.max(1, Math.floor(sql.maxConnections * shareOfConnections)),
    check: checkScheduleDue,

    async handle(due, { streamCreatedAt }) {
      const status = await queueStatus(sql, streamCreatedAt);
      if (status === "unconfirmed") return "later";
      // A scheduler whose database knows the change sends it again.
      if (status === "discarded") return "done";
      const outcome = await dueChanges.apply(due);
      await publishOutcome(client, due, outcome);
      if (outcome.outcome === "failed")
        logger.error(
          { scheduled_change: due.id, reason: outcome.reason },
          "a due change has failed",
        );
      return verdictOf(outcome);
    },

    async onRetriesExhausted(due, error) {
      logger.error({ scheduled_change: due.id, err: error }, "a due change is given up");
      const name = error instanceof Error ? error.name : typeof error;
      const outcome = await dueChanges.giveUp(due, `It could not be processed (${name}).`);
      await publishOutcome(client, due, outcome);
    },
  });
}

/** The broker answers in milliseconds; after this time it counts as away. */
const acknowledgementTimeoutMs = 2_000;

/** Told again, it changes nothing: the broker drops it by its id, or the scheduler by the change's. */
async function publishOutcome(
  client: JetStreamClient,
  due: ScheduleDue,
  outcome: Outcome,
): Promise<void> {
  await client.publish(
    scheduleStream.resolved.subject,
    JSON.stringify(resolvedMessage(due, outcome)),
    { msgID: `resolved.${due.id}`, timeout: acknowledgementTimeoutMs },
  );
}
