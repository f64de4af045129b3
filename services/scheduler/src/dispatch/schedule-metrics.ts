import type { ScheduleResolved } from "@halyard/contracts";
import { isOutage, type Sql } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import type { Logger } from "pino";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { overdueSeconds } from "./dispatch-store.ts";

/** How scheduled changes end, and how late. */
export type ScheduleMetrics = {
  /** `latenessSeconds` is given for a change that was applied. */
  settled(outcome: ScheduleResolved["outcome"], latenessSeconds: number | undefined): void;
  /** How long the longest overdue change has been so; 0 when none is. */
  overdue(seconds: number): void;
};

/** From punctual to what an outage of a day makes of it. */
const latenessBucketsSeconds = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600, 7_200, 21_600,
  86_400,
];

export function createScheduleMetrics(registry: Registry): ScheduleMetrics {
  const settled = new Counter({
    name: "halyard_scheduled_changes_total",
    help: "Scheduled changes that have ended, by how.",
    labelNames: ["outcome"],
    registers: [registry],
  });
  const lateness = new Histogram({
    name: "halyard_scheduled_change_lateness_seconds",
    help: "How long after its time a scheduled change took effect.",
    buckets: latenessBucketsSeconds,
    registers: [registry],
  });
  const overdue = new Gauge({
    name: "halyard_scheduled_change_overdue_seconds",
    help: "How long the change that is due longest and not made yet has been due; 0 when there is none.",
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
 * Keeps the figure by which an operator sees that changes are due and are not made: lateness is known
 * only afterwards, and while something is away nothing is made at all.
 */
const pollIntervalMs = 2_000;

export function watchOverdue(options: { sql: Sql; metrics: ScheduleMetrics; logger: Logger }): {
  stop(): Promise<void>;
} {
  const { sql, metrics, logger } = options;
  return startInterval(async () => metrics.overdue(await overdueSeconds(sql)), {
    intervalMs: pollIntervalMs,
    isExpected: isOutage,
    onFailure: (err) => logger.warn({ err }, "what is overdue is not known now"),
  });
}
