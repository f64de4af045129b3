import { Counter, Gauge, type Registry } from "prom-client";

export type SlotMetrics = ReturnType<typeof createSlotMetrics>;

/** The metrics of an edge's slots. Gauges have the values of the last check, half a second ago at most. */
export function createSlotMetrics(registry: Registry) {
  const metric = (name: string, help: string) => ({
    name: `halyard_edge_slots_${name}`,
    help,
    registers: [registry],
  });
  const refused = new Counter({
    ...metric(
      "refused_total",
      "Streams that were refused: the plan's limit was reached (limit), or the counts were unavailable (unknown).",
    ),
    labelNames: ["reason"],
  });
  for (const reason of ["limit", "unknown"]) refused.inc({ reason }, 0);
  return {
    refused,
    lease: new Gauge(
      metric("lease", "1 while the other edges count this edge's streams; otherwise 0."),
    ),
    held: new Gauge(metric("held", "Streams that the bucket counts for this edge.")),
    waiting: new Gauge(metric("waiting", "Requests for a stream that wait for NATS.")),
    retried: new Counter(
      metric("claims_retried_total", "Writes that failed because another edge wrote first."),
    ),
  };
}
