import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { SendResult } from "../sending/send.ts";
import type { Recorded } from "./attempt-store.ts";
import { wasDelivered } from "./decide-after-attempt.ts";
import type { RunningAttempt } from "./plan-claims.ts";

/** Metrics of attempts and deliveries: results, waiting times, and attempts in progress. */
export type DispatchMetrics = {
  /** `waitedMs` is set for the first attempt of a delivery only. */
  attempted(result: SendResult, waitedMs: number | null): void;
  moved(status: Recorded["status"]): void;
  underWay(running: readonly RunningAttempt[]): void;
};

/** From 5 ms to the delay that an outage of an hour causes. */
const waitBucketsSeconds = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600,
];
/** From 10 ms to the time-out of an attempt. */
const durationBucketsSeconds = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30];

export function createDispatchMetrics(registry: Registry): DispatchMetrics {
  const registers = [registry];
  const attempts = new Histogram({
    name: "halyard_webhook_attempt_duration_seconds",
    help: "Duration of delivery attempts, by outcome.",
    labelNames: ["outcome"],
    buckets: durationBucketsSeconds,
    registers,
  });
  const waits = new Histogram({
    name: "halyard_webhook_first_attempt_delay_seconds",
    help: "Time from the receipt of an event to the first attempt of a delivery.",
    buckets: waitBucketsSeconds,
    registers,
  });
  const moves = new Counter({
    name: "halyard_webhook_deliveries_total",
    help: "Deliveries after an attempt, by their new status.",
    labelNames: ["status"],
    registers,
  });
  const inProgress = new Gauge({
    name: "halyard_webhook_attempts_in_progress",
    help: "Delivery attempts in progress in this process, by kind.",
    labelNames: ["kind"],
    registers,
  });
  return {
    attempted(result, waitedMs) {
      attempts.observe({ outcome: outcomeOf(result) }, result.durationMs / 1_000);
      if (waitedMs !== null) waits.observe(waitedMs / 1_000);
    },
    moved: (status) => moves.inc({ status: status.replace(" ", "_") }),
    underWay(running) {
      for (const kind of ["quick", "lingering", "slow"] as const)
        inProgress.set({ kind }, running.filter((attempt) => attempt.kind === kind).length);
    },
  };
}

function outcomeOf(result: SendResult): string {
  if (wasDelivered(result)) return "delivered";
  if (result.kind === "answered") return "rejected";
  return result.timedOut ? "timed_out" : "failed";
}
