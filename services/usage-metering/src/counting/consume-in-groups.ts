import type { Checked } from "@halyard/contracts";
import {
  type Consumption,
  consumeQueue,
  parseJson,
  type QueueMessage,
  type QueueMetrics,
  type Verdict,
} from "@halyard/jetstream";
import { isOutage } from "@halyard/postgres";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { createCountInGroups } from "./count-in-groups.ts";

/**
 * Counts the messages of a queue. A message is acknowledged after the commit. If the process dies between the two, the
 * broker delivers the message again, and it adds nothing.
 */
export function consumeInGroups<Message>(options: {
  connection: NatsConnection;
  queue: { stream: string; consumer: string; subject: string };
  /** Maximum number of messages in progress. Waiting messages share the next transaction. */
  concurrency: number;
  check(data: unknown): Checked<Message>;
  /** Counts messages together, all or none. */
  count(messages: readonly Message[]): Promise<void>;
  metrics: QueueMetrics;
  logger: Logger;
}): Consumption {
  const { connection, queue, concurrency, check, count, metrics, logger } = options;
  const groups = createCountInGroups({
    count,
    isOutage,
    onOutage: (err) => logger.warn({ err }, "usage is not being counted; retrying"),
  });

  async function handle({ payload }: QueueMessage): Promise<Verdict> {
    const checked = check(parseJson(payload));
    if (!checked.ok) return { deadLetter: checked.problem };
    await groups.add(checked.value, payload.length);
    return "done";
  }

  const consumption = consumeQueue({
    ...queue,
    ...{ connection, concurrency, handle, isOutage, metrics, logger },
    verify: "unsigned",
  });
  return {
    isRunning: consumption.isRunning,
    stop() {
      groups.stopWaiting();
      return consumption.stop();
    },
  };
}
