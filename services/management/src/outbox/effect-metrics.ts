import { Counter, Gauge, type Registry } from "prom-client";
import type { LiveEdges } from "../edges/live-edges.ts";
import type { Incomplete } from "./effects.ts";

/** Returns the function that counts a wait that ended early. */
export function createEffectMetrics(
  registry: Registry,
  edges: Pick<LiveEdges, "count">,
): (step: Incomplete) => void {
  const registers = [registry];
  new Gauge({
    name: "halyard_live_edges",
    help: "Edges that the answers to writes wait for",
    registers,
    collect() {
      this.set(edges.count());
    },
  });
  const incomplete = new Counter({
    name: "halyard_write_waits_incomplete_total",
    help: "Answers to writes that did not wait until the write was in effect, by the step that was not completed",
    labelNames: ["step"],
    registers,
  });
  for (const step of ["disconnected", "publication", "edges", "keys"]) incomplete.inc({ step }, 0);
  return (step) => incomplete.inc({ step });
}
