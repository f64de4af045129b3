import { Counter, Gauge, type Registry } from "prom-client";
import type { SlotFigures } from "./lease-slots.ts";

/** What an edge tells about its slots for streams. All of it is looked up when somebody asks. */
export function registerSlotMetrics(registry: Registry, figures: () => SlotFigures): void {
  const registers = [registry];
  new Gauge({
    name: "halyard_edge_slots_lease",
    help: "1 while this edge has a lease by which it may hold slots for streams; otherwise 0.",
    registers,
    collect() {
      this.set(figures().hasLease ? 1 : 0);
    },
  });
  new Gauge({
    name: "halyard_edge_slots_held",
    help: "Slots for streams that are written down for this edge.",
    registers,
    collect() {
      this.set(figures().held);
    },
  });
  new Gauge({
    name: "halyard_edge_slots_waiting",
    help: "Requests for a stream that wait to be told whether there is a slot.",
    registers,
    collect() {
      this.set(figures().waiting);
    },
  });
  new Counter({
    name: "halyard_edge_slots_refused_total",
    help: "Streams that were refused a slot: all of the plan's were taken (limit), or nobody could be asked (unknown).",
    labelNames: ["reason"],
    registers,
    collect() {
      const { refusedByLimit, refusedUnknown } = figures();
      this.reset();
      this.inc({ reason: "limit" }, refusedByLimit);
      this.inc({ reason: "unknown" }, refusedUnknown);
    },
  });
  registerTrouble(registers, figures);
}

function registerTrouble(registers: Registry[], figures: () => SlotFigures): void {
  new Counter({
    name: "halyard_edge_slots_leases_lost_total",
    help: "Leases of this edge that ended before it stopped; each time its limited streams were closed.",
    registers,
    collect() {
      this.reset();
      this.inc(figures().leasesLost);
    },
  });
  new Counter({
    name: "halyard_edge_slots_claims_retried_total",
    help: "Claims for slots that another edge was ahead of, and that were made again.",
    registers,
    collect() {
      this.reset();
      this.inc(figures().claimsRetried);
    },
  });
}
