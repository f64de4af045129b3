import { Counter, Gauge, type Registry } from "prom-client";
import type { Counting, CountingFigures } from "./counting.ts";
import type { UsageSender } from "./send-usage.ts";

/** What an edge tells about its counting. All of it is looked up when somebody asks. */
export function registerUsageMetrics(options: {
  registry: Registry;
  counting: Counting;
  sender: UsageSender;
  isQuotaCurrent: () => boolean;
}): void {
  registerCountingMetrics(options.registry, () => options.counting.figures());
  registerSenderMetrics(options.registry, options.sender);
  new Gauge({
    name: "halyard_edge_quota_current",
    help: "1 while this edge hears what organizations have used of their month.",
    registers: [options.registry],
    collect() {
      this.set(options.isQuotaCurrent() ? 1 : 0);
    },
  });
}

function registerCountingMetrics(registry: Registry, figures: () => CountingFigures): void {
  const registers = [registry];
  new Counter({
    name: "halyard_edge_usage_requests_total",
    help: "Requests that were counted, but for those of the last moment.",
    registers,
    collect() {
      this.reset();
      this.inc(figures().taken);
    },
  });
  new Gauge({
    name: "halyard_edge_usage_waiting_requests",
    help: "Counted requests of which it is not known yet that they have reached NATS, but for those of the last moment.",
    registers,
    collect() {
      this.set(figures().underWay);
    },
  });
  new Counter({
    name: "halyard_edge_usage_refused_total",
    help: "Requests that were refused because their organization had used up its month.",
    registers,
    collect() {
      this.reset();
      this.inc(figures().refused);
    },
  });
  new Counter({
    name: "halyard_edge_usage_dropped_total",
    help: "What was not counted because too much had gathered that could not be sent.",
    labelNames: ["kind"],
    registers,
    collect() {
      this.reset();
      for (const [kind, count] of Object.entries(figures().dropped)) this.inc({ kind }, count);
    },
  });
}

function registerSenderMetrics(registry: Registry, { figures }: UsageSender): void {
  new Counter({
    name: "halyard_edge_usage_messages_total",
    help: "Messages about what was counted, by whether NATS took them; a failed one is sent again.",
    labelNames: ["outcome"],
    registers: [registry],
    collect() {
      this.reset();
      for (const [outcome, count] of Object.entries(figures)) this.inc({ outcome }, count);
    },
  });
}
