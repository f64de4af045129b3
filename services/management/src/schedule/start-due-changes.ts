import type { Consumption, QueueMetrics } from "@halyard/jetstream";
import type { Sql } from "@halyard/postgres";
import { createFlagChanges } from "../flags/flag-changes.ts";
import { createWriter } from "../outbox/write.ts";
import type { Broker } from "../relay/broker.ts";
import { queueStanding } from "../relay/streams-standing.ts";
import { createDueChanges } from "./apply-due-change.ts";
import { consumeDueChanges } from "./due-consumer.ts";

/**
 * How much of the connections to PostgreSQL due changes take, when many come due at once. The larger
 * part is left to the requests, for whose answers somebody waits; and a few transactions side by side
 * already keep PostgreSQL busy.
 */
const shareOfConnections = 0.4;

/**
 * Composes the consumer that applies due changes in this process. Unlike requests, due changes do not wait
 * until they are in effect, so that a burst of thousands is not slowed down.
 */
export function startDueChanges(options: {
  sql: Sql;
  broker: Broker;
  wakeRelay: () => void;
  now: () => Date;
  newId: () => string;
  queueMetrics: QueueMetrics;
}): Consumption {
  const { sql, broker, now, newId } = options;
  const writer = createWriter({ sql, newId, wakeRelay: options.wakeRelay });
  return consumeDueChanges({
    ...broker,
    dueChanges: createDueChanges({ writer, changes: createFlagChanges({ now, newId }), now }),
    queueStanding: (createdAt) => queueStanding(sql, createdAt),
    concurrency: Math.max(1, Math.floor(sql.maxConnections * shareOfConnections)),
    metrics: options.queueMetrics,
  });
}
