import { collectDefaultMetrics, Histogram, Registry } from "prom-client";

/** The figures of one process, as Prometheus reads them. */
export type Metrics = Registry;

/** A registry with the figures of the process itself; every series is labelled with the service. */
export function createMetrics(options: { service: string }): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ service: options.service });
  collectDefaultMetrics({ register: registry });
  return registry;
}

/** From well below a millisecond, where the edge answers, to beyond what a caller waits for. */
const durationBucketsSeconds = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

export type RequestDurations = Histogram<"method" | "route" | "status">;

export function requestDurations(registry: Registry): RequestDurations {
  const present = registry.getSingleMetric("halyard_http_request_duration_seconds");
  if (present !== undefined) return present as RequestDurations;
  return new Histogram({
    name: "halyard_http_request_duration_seconds",
    help: "How long answers took, from the request's headers to the last byte handed to the system.",
    labelNames: ["method", "route", "status"],
    buckets: durationBucketsSeconds,
    registers: [registry],
  });
}
