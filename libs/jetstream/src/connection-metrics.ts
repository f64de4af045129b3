import { Counter, Gauge, type Registry } from "prom-client";
import type { ConnectionWatch } from "./connection-watch.ts";

/** Registers the metrics of a process's connection to NATS and of its followers. */
export function registerConnectionMetrics(
  registry: Registry,
  watch: () => ConnectionWatch | undefined,
): void {
  const registers = [registry];
  new Gauge({
    name: "halyard_nats_connected",
    help: "1 while this process is connected to NATS.",
    registers,
    collect() {
      this.set(watch()?.isConnected() ? 1 : 0);
    },
  });
  new Gauge({
    name: "halyard_follower_current",
    help: "1 while this process has everything that the stream contains.",
    labelNames: ["stream"],
    registers,
    collect() {
      for (const { stream, isCurrent } of watch()?.followers ?? [])
        this.set({ stream }, isCurrent() ? 1 : 0);
    },
  });
  new Counter({
    name: "halyard_follower_restarts_total",
    help: "Restarts of followers that were not current while NATS was connected.",
    labelNames: ["stream"],
    registers,
    collect() {
      this.reset();
      for (const { stream, restarts } of watch()?.followers ?? []) this.inc({ stream }, restarts());
    },
  });
}
