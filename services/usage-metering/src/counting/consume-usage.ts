import {
  checkEvaluationsReported,
  checkUsageRecorded,
  evaluationsStream,
  usageStream,
} from "@halyard/contracts";
import type { Consumption, QueueMetrics } from "@halyard/jetstream";
import type { Sql } from "@halyard/postgres";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { consumeInGroups } from "./consume-in-groups.ts";
import { type Counted, countMessages } from "./count-messages.ts";
import { countReports } from "./count-reports.ts";
import type { UsageMetrics } from "./usage-metrics.ts";

type ConsumingOptions = {
  connection: NatsConnection;
  sql: Sql;
  usageMetrics: UsageMetrics;
  queueMetrics: QueueMetrics;
  logger: Logger;
};

const messagesInProgress = 256;
/** Lower, because applications decide about the size of a report: up to 300 KB. */
const reportsInProgress = 64;

/** Counts the messages of edges. */
export function consumeUsage(
  options: ConsumingOptions & {
    /** Called after each commit. */
    onCounted: (counted: Counted) => void;
  },
): Consumption {
  const { name: stream, recorded } = usageStream;
  return consumeInGroups({
    ...options,
    queue: { stream, ...recorded },
    concurrency: messagesInProgress,
    check: checkUsageRecorded,
    async count(messages) {
      const counted = await countMessages(options.sql, messages);
      options.usageMetrics.counted(counted, messages.length);
      options.onCounted(counted);
    },
    metrics: options.queueMetrics,
  });
}

/** Counts the evaluations that applications report through the edges. */
export function consumeReports(options: ConsumingOptions): Consumption {
  const { name: stream, reported } = evaluationsStream;
  return consumeInGroups({
    ...options,
    queue: { stream, ...reported },
    concurrency: reportsInProgress,
    check: checkEvaluationsReported,
    async count(reports) {
      const counted = await countReports(options.sql, reports);
      options.usageMetrics.reportsCounted({ counted, repeated: reports.length - counted });
    },
    metrics: options.queueMetrics,
  });
}
