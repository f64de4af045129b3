import { checkScheduleDue, type ScheduleDue, scheduleStream } from "@halyard/contracts";
import {
  type Consumption,
  consumeJson,
  publishSigned,
  type QueueMetrics,
  type SignMessage,
  type VerifyMessage,
} from "@halyard/jetstream";
import { isOutage, type Sql } from "@halyard/postgres";
import { createWriter } from "../outbox/write.ts";
import type { Broker } from "../publishing/broker.ts";
import { queueStatus } from "../publishing/records.ts";
import { createDueChanges, type Outcome, resolvedMessage, verdictOf } from "./due-changes.ts";

/**
 * Share of the PostgreSQL connections for due changes, because many can be due at the same time. The larger share is
 * left to requests, whose clients are waiting. A few concurrent transactions already use the full capacity of
 * PostgreSQL.
 */
const shareOfConnections = 0.4;

/**
 * Consumes due changes, makes them, and sends their outcomes to the scheduler. A message is acknowledged only after the
 * broker has stored the outcome. If this process dies before that, the message is delivered again, and the next process
 * reads the outcome and sends it again.
 *
 * Unlike requests, due changes do not wait until they are in effect, so that a burst of thousands is not slowed down.
 */
export function consumeDueChanges(options: {
  sql: Sql;
  broker: Broker;
  sign: SignMessage;
  verify: VerifyMessage;
  wakeRelay: () => void;
  now: () => Date;
  newId: () => string;
  metrics: QueueMetrics;
}): Consumption {
  const { sql, broker, verify, now, newId, metrics } = options;
  const { connection, logger } = broker;
  const writer = createWriter({ sql, newId, wakeRelay: options.wakeRelay });
  const dueChanges = createDueChanges({ writer, now, newId });
  return consumeJson({
    ...{ connection, verify, metrics, logger, isOutage },
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
      await publishOutcome(options, due, outcome);
      if (outcome.outcome === "failed")
        logger.error({ scheduled_change: due.id, reason: outcome.reason }, "a due change failed");
      return verdictOf(outcome);
    },

    async onRetriesExhausted(due, error) {
      logger.error({ scheduled_change: due.id, err: error }, "a due change exhausted its retries");
      const name = error instanceof Error ? error.name : typeof error;
      const outcome = await dueChanges.giveUp(due, `It could not be processed (${name}).`);
      await publishOutcome(options, due, outcome);
    },
  });
}

/**
 * Publishes an outcome. A repetition is harmless: the broker discards it by its message id, or the scheduler by the id
 * of the change.
 */
async function publishOutcome(
  { broker, sign }: { broker: Broker; sign: SignMessage },
  due: ScheduleDue,
  outcome: Outcome,
): Promise<void> {
  await publishSigned(broker.client, sign, {
    subject: scheduleStream.resolved.subject,
    payload: JSON.stringify(resolvedMessage(due, outcome)),
    messageId: `resolved.${due.id}`,
  });
}
