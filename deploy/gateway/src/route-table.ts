import { type ServiceName, serviceNames } from "@halyard/contracts";

/** The destination of a path: a service or the dashboard. */
export type Target = ServiceName | "dashboard";

/**
 * Maps paths to services. The first matching entry wins, so more specific patterns precede less specific ones. A pattern
 * is a path whose segments may be parameters. With a star at its end, it matches all paths with that prefix.
 *
 * The configuration of HAProxy, the HTTPRoute of Kubernetes and the built-in proxy of `npm start` follow this table.
 */
export const routeTable: readonly { pattern: `/${string}`; target: Target }[] = [
  { pattern: "/api/v1/sdk/*", target: "sdk-edge" },
  { pattern: "/ofrep/*", target: "sdk-edge" },
  {
    pattern: "/api/v1/flags/:flagId/environments/:envId/schedule",
    target: "scheduler",
  },
  { pattern: "/api/v1/schedules", target: "scheduler" },
  {
    pattern: "/api/v1/projects/:projectId/webhooks",
    target: "webhook-dispatcher",
  },
  {
    pattern: "/api/v1/projects/:projectId/webhooks/*",
    target: "webhook-dispatcher",
  },
  {
    pattern: "/api/v1/projects/:projectId/environments/:environmentId/readers",
    target: "usage-metering",
  },
  { pattern: "/api/v1/flags/:id/usage", target: "usage-metering" },
  { pattern: "/api/v1/usage", target: "usage-metering" },
  { pattern: "/api/v1/usage/days", target: "usage-metering" },
  { pattern: "/api/v1/usage/flags", target: "usage-metering" },
  { pattern: "/api/v1/*", target: "management" },
  { pattern: "/auth/*", target: "management" },
  { pattern: "/*", target: "dashboard" },
];

/** Returns an object with a value for each target. */
export function mapTargets<T>(create: (target: Target) => T): Readonly<Record<Target, T>> {
  const targets = [...serviceNames, "dashboard"] as const;
  return Object.fromEntries(targets.map((target) => [target, create(target)])) as Record<Target, T>;
}

/** Returns a regular expression for the paths of a pattern, in the syntax of RE2, which all proxies understand. */
export function expressionOf(pattern: string): string {
  return `^${pattern.replace(/\*$/, ".*").replaceAll(/:\w+/g, "[^/]+")}$`;
}
