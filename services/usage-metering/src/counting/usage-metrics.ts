import { Counter, Histogram, type Registry } from "prom-client";
import type { Counted } from "./count-messages.ts";
import { newestInstantMs } from "./decide-sums.ts";
import { sumTables } from "./sum-tables.ts";

/** The metrics of counting. They have no label for the organization, because there are too many organizations. */
export type UsageMetrics = {
  /** Records a committed transaction with a number of messages, including repeated ones. */
  counted(counted: Counted, messages: number): void;
  /** Records a committed transaction with reports of applications. */
  reportsCounted(reports: { counted: number; repeated: number }): void;
  quotaPublished(): void;
  /** Records a quota that was behind the database and is published again. */
  quotaRepaired(): void;
  rolledUp(hours: number): void;
};

/** From the interval at which edges send, to the longest expected outage of this service. */
const lagBucketsSeconds = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600, 21_600, 86_400];

export function createUsageMetrics(registry: Registry): UsageMetrics {
  const registers = [registry];
  const messages = new Counter({
    name: "halyard_usage_messages_received_total",
    help: "Messages of edges, by outcome. A repeated message adds nothing.",
    labelNames: ["outcome"],
    registers,
  });
  const requests = new Counter({
    name: "halyard_usage_requests_total",
    help: "Requests of SDKs that this process has counted.",
    labelNames: ["endpoint"],
    registers,
  });
  const misdated = new Counter({
    name: "halyard_usage_misdated_requests_total",
    help: "Requests that are counted in the current hour because the edge's clock is implausible.",
    registers,
  });
  const lag = new Histogram({
    name: "halyard_usage_lag_seconds",
    help: "Time from the newest use in a message until its commit.",
    buckets: lagBucketsSeconds,
    registers,
  });
  const reports = new Counter({
    name: "halyard_usage_reports_received_total",
    help: "Reports of evaluations in applications, by outcome. A repeated report adds nothing.",
    labelNames: ["outcome"],
    registers,
  });
  const quotaPublished = new Counter({
    name: "halyard_quota_published_total",
    help: "Quotas that this process has published to the edges.",
    registers,
  });
  const quotaRepaired = new Counter({
    name: "halyard_quota_repaired_total",
    help: "Published quotas that were behind the database, for instance after a process died.",
    registers,
  });
  const rolledUp = new Counter({
    name: "halyard_usage_hours_rolled_up_total",
    help: "Hourly rows that were added to daily rows.",
    registers,
  });
  return {
    counted({ counted, sums, now }, all) {
      messages.inc({ outcome: "counted" }, counted.length);
      messages.inc({ outcome: "repeated" }, all - counted.length);
      for (const row of sums.rows.get(sumTables.requests) ?? [])
        requests.inc({ endpoint: String(row.endpoint) }, Number(row.requests));
      misdated.inc(sums.misdated);
      for (const message of counted) {
        const newestMs = newestInstantMs(message);
        if (newestMs !== undefined) lag.observe(Math.max(0, now.getTime() - newestMs) / 1_000);
      }
    },
    reportsCounted({ counted, repeated }) {
      reports.inc({ outcome: "counted" }, counted);
      reports.inc({ outcome: "repeated" }, repeated);
    },
    quotaPublished: () => quotaPublished.inc(),
    quotaRepaired: () => quotaRepaired.inc(),
    rolledUp: (hours) => rolledUp.inc(hours),
  };
}
