import { checkScheduleDue, type ScheduleDue, scheduleStream } from "@halyard/contracts";
import {
  type Consumption,
  consumeQueue,
  isBrokerAway,
  parseJson,
  type QueueMessage,
  type QueueMetrics,
  type Verdict,
} from "@halyard/jetstream";
import { isOutage } from "@halyard/postgres";
import type { JetStreamClient } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { DueChanges } from "./apply-due-change.ts";
import { type Outcome, resolvedMessage, verdictOf } from "./outcome.ts";

/**
 * Takes changes that have come due from the queue, has them made, and tells the scheduler what became of
 * them. A message leaves the queue only when the broker has that answer: whoever dies in between leaves
 * it there, and who takes it up again finds the outcome and tells it again.
 */
export function consumeDueChanges(options: {
  connection: NatsConnection;
  client: JetStreamClient;
  dueChanges: DueChanges;
  /** Returns whether messages of the queue with this creation time take effect. */
  queueStanding: (createdAt: string) => Promise<"current" | "unconfirmed" | "discarded">;
  concurrency: number;
  metrics: QueueMetrics;
  logger: Logger;
}): Consumption {
  const { client, dueChanges, logger } = options;

  async function handle(message: QueueMessage): Promise<Verdict> {
    const due = read(message);
    if (!due.ok) return { setAside: due.problem };
    const standing = await options.queueStanding(message.streamCreatedAt);
    if (standing === "unconfirmed") return "later";
    // A scheduler whose database knows the change sends it again.
    if (standing === "discarded") return "done";
    const outcome = await dueChanges.apply(due.value);
    await tell(client, due.value, outcome);
    if (outcome.outcome === "failed")
      logger.error({ change: due.value.id, reason: outcome.reason }, "a due change has failed");
    return verdictOf(outcome);
  }

  async function giveUp(message: QueueMessage, error: unknown): Promise<void> {
    const due = read(message);
    if (!due.ok) return;
    logger.error({ change: due.value.id, err: error }, "a due change is given up");
    const name = error instanceof Error ? error.name : typeof error;
    const outcome = await dueChanges.giveUp(due.value, `It could not be processed (${name}).`);
    await tell(client, due.value, outcome);
  }

  return consumeQueue({
    connection: options.connection,
    stream: scheduleStream.name,
    consumer: scheduleStream.due.consumer,
    subject: scheduleStream.due.subject,
    concurrency: options.concurrency,
    handle,
    isOutage: (error) => isOutage(error) || isBrokerAway(error),
    onGivenUp: giveUp,
    metrics: options.metrics,
    logger,
  });
}

const read = ({ payload }: QueueMessage) => checkScheduleDue(parseJson(payload));

/** The broker answers in milliseconds; after this time it counts as away. */
const acknowledgementTimeoutMs = 2_000;

/** Told again, it changes nothing: the broker drops it by its id, or the scheduler by the change's. */
async function tell(client: JetStreamClient, due: ScheduleDue, outcome: Outcome): Promise<void> {
  await client.publish(
    scheduleStream.resolved.subject,
    JSON.stringify(resolvedMessage(due, outcome)),
    { msgID: `resolved.${due.id}`, timeout: acknowledgementTimeoutMs },
  );
}
