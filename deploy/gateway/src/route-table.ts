import type { ServiceName } from "@halyard/contracts";

/**
 * Maps paths to services. The first matching entry wins. A pattern is a path whose segments may be parameters. With a
 * star at its end, it matches all paths with that prefix.
 *
 * Other ingresses can be configured from this table. All of them support prefixes. Parameters become regular
 * expressions: nginx `location ~`, Envoy `safe_regex`, Traefik `PathRegexp`, `RegularExpression` of the Gateway API. An
 * ingress without regular expressions sends everything to this gateway. More
 * specific patterns precede less specific ones, because some ingresses match in order. Others, such as the router of
 * this gateway, choose the most specific pattern.
 */
type RoutePattern = `/${string}`;

type RouteEntry = {
  pattern: RoutePattern;
  service: ServiceName;
};

export const routeTable: readonly RouteEntry[] = [
  { pattern: "/api/v1/sdk/*", service: "sdk-edge" },
  { pattern: "/ofrep/*", service: "sdk-edge" },
  {
    pattern: "/api/v1/flags/:flagId/environments/:envId/schedule",
    service: "scheduler",
  },
  { pattern: "/api/v1/schedules", service: "scheduler" },
  {
    pattern: "/api/v1/projects/:projectId/webhooks",
    service: "webhook-dispatcher",
  },
  {
    pattern: "/api/v1/projects/:projectId/webhooks/*",
    service: "webhook-dispatcher",
  },
  { pattern: "/api/v1/flags/:id/usage", service: "usage-metering" },
  { pattern: "/api/v1/usage", service: "usage-metering" },
  { pattern: "/api/v1/usage/days", service: "usage-metering" },
  { pattern: "/api/v1/usage/flags", service: "usage-metering" },
  { pattern: "/api/v1/*", service: "management" },
];
