import { isOutage, type Sql } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import type { Logger } from "pino";
import type { ScheduleMetrics } from "../schedule-metrics.ts";
import { overdueSeconds } from "./dispatch-store.ts";

/**
 * Keeps the figure by which an operator sees that changes are due and are not made: lateness is known
 * only afterwards, and while something is away nothing is made at all.
 */
const lookEveryMs = 2_000;

export function watchOverdue(options: { sql: Sql; metrics: ScheduleMetrics; logger: Logger }): {
  stop(): Promise<void>;
} {
  const { sql, metrics, logger } = options;
  return startInterval(async () => metrics.overdue(await overdueSeconds(sql)), {
    everyMs: lookEveryMs,
    isExpected: isOutage,
    onFailure: (err) => logger.warn({ err }, "what is overdue is not known now"),
  });
}
