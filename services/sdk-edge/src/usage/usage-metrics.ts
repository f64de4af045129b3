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
    help: "1 while the quotas that this edge has received are current.",
    registers,
    collect() {
      this.set(options.isQuotaCurrent() ? 1 : 0);
    },
  });
  new Counter({
    name: "halyard_usage_collected_requests_total",
    help: "Counted requests that were collected to be sent.",
    registers,
    collect() {
      this.reset();
      this.inc(counting.figures().taken);
    },
  });
  new Gauge({
    name: "halyard_usage_unacknowledged_requests",
    help: "Collected requests that NATS has not acknowledged.",
    registers,
    collect() {
      this.set(counting.figures().underWay);
    },
  });
  new Counter({
    name: "halyard_usage_rejected_requests_total",
    help: "Requests that were rejected because the organization had used up its month.",
    registers,
    collect() {
      this.reset();
      this.inc(counting.figures().rejected);
    },
  });
  new Counter({
    name: "halyard_usage_dropped_total",
    help: "Usage that was not counted because the room for unsent usage was full.",
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
    help: "Attempts to send a message with usage, by outcome. A failed message is sent again.",
    labelNames: ["outcome"],
    registers,
    collect() {
      this.reset();
      for (const [outcome, count] of Object.entries(sender.figures)) this.inc({ outcome }, count);
    },
  });
}
