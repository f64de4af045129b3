import { Counter, Gauge, type Registry } from "prom-client";

export type SlotMetrics = ReturnType<typeof createSlotMetrics>;

/** The metrics of an edge's slots. Gauges have the values of the last check, half a second ago at most. */
export function createSlotMetrics(registry: Registry) {
  const registers = [registry];
  const refused = new Counter({
    name: "halyard_edge_slots_refused_total",
    help: "Streams that were rejected: the plan's limit was reached (limit), or the counts were unavailable (unknown).",
    labelNames: ["reason"],
    registers,
  });
  for (const reason of ["limit", "unknown"]) refused.inc({ reason }, 0);
  return {
    refused,
    lease: new Gauge({
      name: "halyard_edge_slots_lease",
      help: "1 while the other edges count this edge's streams; otherwise 0.",
      registers,
    }),
    held: new Gauge({
      name: "halyard_edge_slots_held",
      help: "Streams that the bucket counts for this edge.",
      registers,
    }),
    waiting: new Gauge({
      name: "halyard_edge_slots_waiting",
      help: "Requests for a stream that wait for NATS.",
      registers,
    }),
    retried: new Counter({
      name: "halyard_edge_slots_claims_retried_total",
      help: "Writes that failed because another edge wrote first.",
      registers,
    }),
  };
}
