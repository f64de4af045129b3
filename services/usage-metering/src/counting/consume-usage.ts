import { checkUsageRecorded, type UsageRecorded, usageStream } from "@halyard/contracts";
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
import { createCountInGroups } from "./count-in-groups.ts";
import { type Counted, countMessages } from "./count-messages.ts";
import type { UsageMetrics } from "./usage-metrics.ts";

/** Maximum number of messages in progress. Waiting messages share the next transaction. */
const concurrency = 256;

/**
 * Counts the messages of edges. A message is acknowledged after the commit. If the process dies between the two, the
 * broker delivers the message again, and it adds nothing.
 */
export function consumeUsage(options: {
  connection: NatsConnection;
  sql: Sql;
  /** Called after each commit. */
  onCounted: (counted: Counted) => void;
  usageMetrics: UsageMetrics;
  metrics: Registry;
  logger: Logger;
}): Consumption {
  const { sql, usageMetrics, logger } = options;
  const groups = createCountInGroups({
    async count(messages: readonly UsageRecorded[]) {
      const counted = await countMessages(sql, messages);
      usageMetrics.counted(counted, messages.length);
      options.onCounted(counted);
    },
    isOutage,
    onOutage: (err) => logger.warn({ err }, "usage is not being counted; retrying"),
  });

  async function handle({ payload }: QueueMessage): Promise<Verdict> {
    const checked = checkUsageRecorded(parseJson(payload));
    if (!checked.ok) return { deadLetter: checked.problem };
    await groups.add(checked.value, payload.length);
    return "done";
  }

  const { name: stream, recorded } = usageStream;
  const consumption = consumeQueue({
    connection: options.connection,
    ...{ stream, consumer: recorded.consumer, subject: recorded.subject },
    ...{ concurrency, handle, isOutage, logger },
    metrics: createQueueMetrics(options.metrics),
  });
  return {
    isRunning: consumption.isRunning,
    stop() {
      groups.stopWaiting();
      return consumption.stop();
    },
  };
}
