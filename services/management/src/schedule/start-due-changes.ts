import type { Consumption, QueueMetrics } from "@halyard/jetstream";
import type { Sql } from "@halyard/postgres";
import { createFlagChanges } from "../flags/flag-changes.ts";
import type { Publications } from "../outbox/publications.ts";
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
 * A request is answered when the broker has its events; a due change is not waited for. The scheduler
 * may hear of it a moment before the events are out, and a burst of thousands does not go at the pace
 * at which the relay confirms.
 */
const nobodyWaits: Publications = {
  expect: () => ({ confirmed: Promise.resolve(), forget: () => undefined }),
  confirm: () => undefined,
};

/** Composes what makes the changes that come due in this process. */
export function startDueChanges(options: {
  sql: Sql;
  broker: Broker;
  wakeRelay: () => void;
  now: () => Date;
  newId: () => string;
  queueMetrics: QueueMetrics;
}): Consumption {
  const { sql, broker, now, newId } = options;
  const writer = createWriter({
    sql,
    publications: nobodyWaits,
    newId,
    wakeRelay: options.wakeRelay,
    isInEffect: () => true,
  });
  return consumeDueChanges({
    ...broker,
    dueChanges: createDueChanges({ writer, changes: createFlagChanges({ now, newId }), now }),
    queueStanding: (createdAt) => queueStanding(sql, createdAt),
    concurrency: Math.max(1, Math.floor(sql.options.max * shareOfConnections)),
    metrics: options.queueMetrics,
  });
}
