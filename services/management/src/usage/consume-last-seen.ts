import { checkUsageLastSeen, usageStream } from "@halyard/contracts";
import {
  type Consumption,
  consumeQueue,
  isBrokerAway,
  parseJson,
  type QueueMessage,
  type QueueMetrics,
  type Verdict,
} from "@halyard/jetstream";
import { isOutage, type Sql } from "@halyard/postgres";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { recordLastSeen } from "./last-seen-store.ts";

/** A message tells of up to thousands of keys and flags; there are few, and nobody waits for them. */
const concurrency = 1;

/** Takes from the queue when keys and flags were last used, and keeps it for those who look. */
export function consumeLastSeen(options: {
  connection: NatsConnection;
  sql: Sql;
  metrics: QueueMetrics;
  logger: Logger;
}): Consumption {
  async function handle({ payload }: QueueMessage): Promise<Verdict> {
    const seen = checkUsageLastSeen(parseJson(payload));
    if (!seen.ok) return { setAside: seen.problem };
    await recordLastSeen(options.sql, seen.value);
    return "done";
  }

  return consumeQueue({
    ...options,
    stream: usageStream.name,
    consumer: usageStream.lastSeen.consumer,
    subject: usageStream.lastSeen.subject,
    concurrency,
    handle,
    isOutage: (error) => isOutage(error) || isBrokerAway(error),
  });
}
