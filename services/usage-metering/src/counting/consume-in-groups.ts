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
import { inSpan, startMessaging, type TraceContext } from "@halyard/tracing";
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
  const groups = createCountInGroups<Received<Message>>({
    count: (given) => countTraced(queue.subject, given, count),
    isOutage,
    onOutage: (err) => logger.warn({ err }, "usage is not being counted; retrying"),
  });

  async function handle({ payload, trace }: QueueMessage): Promise<Verdict> {
    const checked = check(parseJson(payload));
    if (!checked.ok) return { deadLetter: checked.problem };
    await groups.add({ message: checked.value, trace }, payload.length);
    return "done";
  }

  const consumption = consumeQueue({
    ...queue,
    ...{ connection, concurrency, handle, isOutage, metrics, logger },
    verify: "unsigned",
    inBatches: true,
  });
  return {
    isRunning: consumption.isRunning,
    stop() {
      groups.stopWaiting();
      return consumption.stop();
    },
  };
}

type Received<Message> = { message: Message; trace: TraceContext | undefined };

/** Counts a group in one span, with links to the spans that sent its messages. */
function countTraced<Message>(
  destination: string,
  group: readonly Received<Message>[],
  count: (messages: readonly Message[]) => Promise<void>,
): Promise<void> {
  const links = group.flatMap(({ trace }) => trace ?? []);
  const batch = { destination, parent: links[0], links, batchCount: group.length };
  const span = links.length === 0 ? undefined : startMessaging("process", batch);
  return inSpan(span, () => count(group.map(({ message }) => message)));
}
