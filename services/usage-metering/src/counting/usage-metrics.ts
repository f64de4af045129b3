import { Counter, Histogram, type Registry } from "prom-client";
import type { Counted } from "./count-messages.ts";
import { newestInstantMs } from "./decide-sums.ts";
import { sumTables } from "./sum-tables.ts";

/** What this process counts, and how soon. Organizations are no labels: there are too many of them. */
export type UsageMetrics = {
  /** A transaction was committed; so many messages were in it, those that were known among them. */
  counted(counted: Counted, messages: number): void;
  /** The figure of a month was published. */
  quotaPublished(): void;
  /** One was found that had not been published as it should. */
  quotaRepaired(): void;
  rolledUp(hours: number): void;
};

/** From what edges gather to how long this service may be away. */
const lagBucketsSeconds = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600, 21_600, 86_400];

export function createUsageMetrics(registry: Registry): UsageMetrics {
  const registers = [registry];
  const messages = new Counter({
    name: "halyard_usage_messages_received_total",
    help: "Messages of edges: counted, or repeated, which adds nothing.",
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
    help: "Requests that are counted in the present hour because the edge's clock is implausible.",
    registers,
  });
  const lag = new Histogram({
    name: "halyard_usage_lag_seconds",
    help: "From the newest instant that a message tells of to its commit.",
    buckets: lagBucketsSeconds,
    registers,
  });
  const quotaPublished = new Counter({
    name: "halyard_quota_published_total",
    help: "Figures of months that this process has published to the edges.",
    registers,
  });
  const quotaRepaired = new Counter({
    name: "halyard_quota_repaired_total",
    help: "Published figures of months that were behind the database, for instance after a process died.",
    registers,
  });
  const rolledUp = new Counter({
    name: "halyard_usage_hours_rolled_up_total",
    help: "Rows of hours that were added to rows of days.",
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
    quotaPublished: () => quotaPublished.inc(),
    quotaRepaired: () => quotaRepaired.inc(),
    rolledUp: (hours) => rolledUp.inc(hours),
  };
}
