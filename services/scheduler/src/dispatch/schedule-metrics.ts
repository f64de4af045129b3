import type { ScheduleResolved } from "@halyard/contracts";
import { isOutage, type Sql } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import type { Logger } from "pino";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { overdueSeconds } from "./dispatch-store.ts";

/** Metrics of scheduled changes: outcomes, lateness and overdue time. */
export type ScheduleMetrics = {
  /** Records an outcome. `latenessSeconds` is undefined unless the change was applied. */
  settled(outcome: ScheduleResolved["outcome"], latenessSeconds: number | undefined): void;
  /** Sets the age of the longest overdue change, or 0 if no change is overdue. */
  overdue(seconds: number): void;
};

/** From punctual changes to an outage of one day. */
const latenessBucketsSeconds = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600, 7_200, 21_600,
  86_400,
];

export function createScheduleMetrics(registry: Registry): ScheduleMetrics {
  const settled = new Counter({
    name: "halyard_scheduled_changes_total",
    help: "Ended scheduled changes, by outcome.",
    labelNames: ["outcome"],
    registers: [registry],
  });
  const lateness = new Histogram({
    name: "halyard_scheduled_change_lateness_seconds",
    help: "Delay between the due time of a scheduled change and its effect.",
    buckets: latenessBucketsSeconds,
    registers: [registry],
  });
  const overdue = new Gauge({
    name: "halyard_scheduled_change_overdue_seconds",
    help: "Time since the due time of the longest overdue scheduled change; 0 if none is overdue.",
    registers: [registry],
  });
  return {
    overdue: (seconds) => overdue.set(seconds),
    settled(outcome, latenessSeconds) {
      settled.inc({ outcome });
      if (latenessSeconds !== undefined) lateness.observe(latenessSeconds);
    },
  };
}

/**
 * Updates the gauge that shows operators that due changes are not being made. Lateness is recorded only after a
 * change, and no change is made while a dependency is unavailable.
 */
const pollIntervalMs = 2_000;

export function watchOverdue(options: { sql: Sql; metrics: ScheduleMetrics; logger: Logger }): {
  stop(): Promise<void>;
} {
  const { sql, metrics, logger } = options;
  return startInterval(async () => metrics.overdue(await overdueSeconds(sql)), {
    intervalMs: pollIntervalMs,
    isExpected: isOutage,
    onFailure: (err) => logger.warn({ err }, "cannot read the overdue time; retrying"),
  });
}
