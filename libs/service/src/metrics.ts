import { collectDefaultMetrics, Registry } from "prom-client";

/** The metrics of one process, in the form of Prometheus. */
export type Metrics = Registry;

/** Creates a registry with the default metrics of the process. Every series has the label `service`. */
export function createMetrics(options: { service: string }): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ service: options.service });
  collectDefaultMetrics({ register: registry });
  return registry;
}
