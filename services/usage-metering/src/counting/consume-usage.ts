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
import type { UsageMetrics } from "../usage-metrics.ts";
import { createCountInGroups } from "./count-in-groups.ts";
import { type Counted, countMessages } from "./count-messages.ts";

/**
 * Takes what edges tell, and counts it. A message leaves the queue after the commit: if the process dies
 * between the two it comes again, and is known.
 */

/** In work at the same time; those that wait for their turn share a transaction. */
const concurrency = 256;

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
    onOutage: (err) => logger.warn({ err }, "nothing is counted now"),
  });

  async function handle({ payload }: QueueMessage): Promise<Verdict> {
    const checked = checkUsageRecorded(parseJson(payload));
    if (!checked.ok) return { setAside: checked.problem };
    await groups.add(checked.value, payload.length);
    return "done";
  }

  const consumption = consumeQueue({
    connection: options.connection,
    stream: usageStream.name,
    consumer: usageStream.recorded.consumer,
    subject: usageStream.recorded.subject,
    concurrency,
    handle,
    isOutage,
    metrics: createQueueMetrics(options.metrics),
    logger,
  });
  return {
    isRunning: consumption.isRunning,
    stop() {
      groups.stopWaiting();
      return consumption.stop();
    },
  };
}
