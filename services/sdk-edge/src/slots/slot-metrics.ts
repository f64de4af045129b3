import { Counter, Gauge, type Registry } from "prom-client";

export type SlotMetrics = ReturnType<typeof createSlotMetrics>;

/** The metrics of an edge's slots. Gauges have the values of the last check, which is at most half a second old. */
export function createSlotMetrics(registry: Registry) {
  const registers = [registry];
  const rejected = new Counter({
    name: "halyard_stream_slot_requests_rejected_total",
    help: "Streams that were rejected: the plan's limit was reached (limit), or the counts were unavailable (unknown).",
    labelNames: ["reason"],
    registers,
  });
  for (const reason of ["limit", "unknown"]) rejected.inc({ reason }, 0);
  return {
    rejected,
    lease: new Gauge({
      name: "halyard_stream_slot_lease_held",
      help: "1 while the other edges count this edge's streams; otherwise 0.",
      registers,
    }),
    held: new Gauge({
      name: "halyard_stream_slots_held",
      help: "Streams that the bucket counts for this edge.",
      registers,
    }),
    waiting: new Gauge({
      name: "halyard_stream_slot_requests_waiting",
      help: "Requests for a stream that wait for NATS.",
      registers,
    }),
    retried: new Counter({
      name: "halyard_stream_slot_claims_retried_total",
      help: "Writes that failed because another edge wrote first.",
      registers,
    }),
  };
}
