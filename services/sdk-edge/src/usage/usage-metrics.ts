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
  const metric = (name: string, help: string) => ({
    name: `halyard_edge_${name}`,
    help,
    registers: [options.registry],
  });
  const counter = (name: string, help: string, read: () => number) =>
    new Counter({
      ...metric(name, help),
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      ...metric(name, help),
      collect() {
        this.set(read());
      },
    });
  const counters = (name: string, help: string, label: string, read: () => object) =>
    new Counter({
      ...metric(name, help),
      labelNames: [label],
      collect() {
        this.reset();
        for (const [value, count] of Object.entries(read())) this.inc({ [label]: value }, count);
      },
    });

  gauge(
    "quota_current",
    "1 while this edge hears what organizations have used of their month.",
    () => (options.isQuotaCurrent() ? 1 : 0),
  );
  counter(
    "usage_requests_total",
    "Requests that were counted, but for those of the last moment.",
    () => counting.figures().taken,
  );
  gauge(
    "usage_waiting_requests",
    "Counted requests of which it is not known yet that they have reached NATS, but for those of the last moment.",
    () => counting.figures().underWay,
  );
  counter(
    "usage_refused_total",
    "Requests that were refused because their organization had used up its month.",
    () => counting.figures().refused,
  );
  counters(
    "usage_dropped_total",
    "What was not counted because too much had gathered that could not be sent.",
    "kind",
    () => counting.figures().dropped,
  );
  counters(
    "usage_messages_total",
    "Messages about what was counted, by whether NATS took them; a failed one is sent again.",
    "outcome",
    () => sender.figures,
  );
}
