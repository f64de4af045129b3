import { Counter, Gauge, type Registry } from "prom-client";
import type { Counting } from "./counting.ts";
import type { UsageSender } from "./send-usage.ts";

/** Registers the metrics of an edge's counting. All are read when they are collected. */
export function registerUsageMetrics(options: {
  registry: Registry;
  counting: Pick<Counting, "figures">;
  sender: Pick<UsageSender, "figures">;
  isQuotaCurrent: () => boolean;
}): void {
  const { counting, sender } = options;
  const registers = [options.registry];
  new Gauge({
    name: "halyard_quota_current",
    help: "1 while this edge receives what organizations have used of their month.",
    registers,
    collect() {
      this.set(options.isQuotaCurrent() ? 1 : 0);
    },
  });
  new Counter({
    name: "halyard_usage_collected_requests_total",
    help: "Counted requests, without those of the last moment.",
    registers,
    collect() {
      this.reset();
      this.inc(counting.figures().taken);
    },
  });
  new Gauge({
    name: "halyard_usage_unacknowledged_requests",
    help: "Counted requests that NATS has not acknowledged, without those of the last moment.",
    registers,
    collect() {
      this.set(counting.figures().underWay);
    },
  });
  new Counter({
    name: "halyard_usage_rejected_requests_total",
    help: "Requests that were rejected because their organization had used up its month.",
    registers,
    collect() {
      this.reset();
      this.inc(counting.figures().rejected);
    },
  });
  new Counter({
    name: "halyard_usage_dropped_total",
    help: "Usage that was not counted because too much of it could not be sent.",
    labelNames: ["kind"],
    registers,
    collect() {
      this.reset();
      for (const [kind, count] of Object.entries(counting.figures().dropped))
        this.inc({ kind }, count);
    },
  });
  new Counter({
    name: "halyard_usage_messages_sent_total",
    help: "Messages with usage, by whether NATS acknowledged them. A failed one is sent again.",
    labelNames: ["outcome"],
    registers,
    collect() {
      this.reset();
      for (const [outcome, count] of Object.entries(sender.figures)) this.inc({ outcome }, count);
    },
  });
}
