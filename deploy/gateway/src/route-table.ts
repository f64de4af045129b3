import type { ServiceName } from "@halyard/contracts";

/**
 * Which service answers what, once. The first entry that matches a path wins. A pattern is a path whose
 * segments may be parameters, or with a star at its end all paths that begin so.
 *
 * Other deployments can be made from this table: every kind of ingress knows prefixes, and says a
 * parameter as a regular expression (nginx `location ~`, Envoy `safe_regex`, Traefik `PathRegexp`, the
 * Gateway API's `RegularExpression`), which is what `expressionOf` answers. One that knows neither sends
 * everything to this gateway. What is more specific stands before what is less so, because some of them
 * go by the order, and some, as the router of this gateway does, by which pattern is the most specific.
 */
export type RoutePattern = `/${string}`;

export type RouteEntry = {
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
  { pattern: "/api/v1/*", service: "management" },
];

/** The entry that a path falls under. */
export function findEntry(
  path: string,
  table: readonly RouteEntry[] = routeTable,
): RouteEntry | undefined {
  return table.find(({ pattern }) => expressionOf(pattern).test(path));
}

/** A parameter is one segment, a star at the end is everything that follows. */
export function expressionOf(pattern: RoutePattern): RegExp {
  const source = pattern.replaceAll(".", "\\.").replace(/\*$/, ".*").replaceAll(/:\w+/g, "[^/]+");
  return new RegExp(`^${source}$`);
}
