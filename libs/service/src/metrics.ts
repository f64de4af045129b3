import { isTracing } from "@halyard/tracing";
import {
  collectDefaultMetrics,
  openMetricsContentType,
  Registry,
  type RegistryContentType,
} from "prom-client";

/** The metrics of one process, in the form of Prometheus; with traces, in that of OpenMetrics. */
export type Metrics = Registry;

/** Creates a registry with the default metrics of the process. Every series has the label `service`. */
export function createMetrics(options: { service: string }): Metrics {
  const registry = new Registry();
  // Only OpenMetrics has exemplars.
  if (isTracing())
    (registry as Registry<RegistryContentType>).setContentType(openMetricsContentType);
  registry.setDefaultLabels({ service: options.service });
  collectDefaultMetrics({ register: registry });
  return registry;
}
