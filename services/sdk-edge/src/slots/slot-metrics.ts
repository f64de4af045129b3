import { Counter, Gauge, type Registry } from "prom-client";
import type { SlotFigures } from "./lease-slots.ts";

/** Registers the metrics of an edge's slots. All of them are read when they are collected. */
export function registerSlotMetrics(registry: Registry, figures: () => SlotFigures): void {
  const registers = [registry];
  const gauge = (name: string, help: string, read: (figures: SlotFigures) => number) =>
    new Gauge({
      name: `halyard_edge_slots_${name}`,
      help,
      registers,
      collect() {
        this.set(read(figures()));
      },
    });
  gauge("lease", "1 while the other edges count this edge's streams; otherwise 0.", (now) =>
    now.isCounted ? 1 : 0,
  );
  gauge("held", "Streams that the bucket counts for this edge.", (now) => now.held);
  gauge("waiting", "Requests for a stream that wait for NATS.", (now) => now.waiting);
  new Counter({
    name: "halyard_edge_slots_refused_total",
    help: "Streams that were refused: the plan's limit was reached (limit), or the counts were unavailable (unknown).",
    labelNames: ["reason"],
    registers,
    collect() {
      const { refusedByLimit, refusedUnknown } = figures();
      this.reset();
      this.inc({ reason: "limit" }, refusedByLimit);
      this.inc({ reason: "unknown" }, refusedUnknown);
    },
  });
  new Counter({
    name: "halyard_edge_slots_claims_retried_total",
    help: "Writes that failed because another edge wrote first.",
    registers,
    collect() {
      this.reset();
      this.inc(figures().claimsRetried);
    },
  });
}
