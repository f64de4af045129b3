import { Histogram, type Registry } from "prom-client";

/** From below a millisecond, the usual duration on an edge, to longer than a client waits. */
const durationBucketsSeconds = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

export type RequestDurations = Histogram<"method" | "route" | "status">;

export function requestDurations(registry: Registry): RequestDurations {
  const present = registry.getSingleMetric("halyard_http_request_duration_seconds");
  if (present !== undefined) return present as RequestDurations;
  return new Histogram({
    name: "halyard_http_request_duration_seconds",
    help: "Duration of requests, from the request's headers to the last byte of the response handed to the system.",
    labelNames: ["method", "route", "status"],
    buckets: durationBucketsSeconds,
    registers: [registry],
  });
}
