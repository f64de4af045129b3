import type { ServiceName } from "@halyard/contracts";

/**
 * Which service answers what, once. The first entry that matches a path wins. Patterns are prefixes
 * that end in a star, which every kind of ingress knows, so that other deployments can be made from
 * this table.
 */
export type RouteEntry = {
  pattern: `/${string}/*`;
  service: ServiceName;
  /** Browsers of any origin may read the answers, so also those that the gateway gives itself. */
  anyOrigin: boolean;
};

export const routeTable: readonly RouteEntry[] = [
  { pattern: "/api/v1/sdk/*", service: "sdk-edge", anyOrigin: true },
  { pattern: "/api/v1/*", service: "management", anyOrigin: false },
];

/** The entry that a path falls under. */
export function findEntry(
  path: string,
  table: readonly RouteEntry[] = routeTable,
): RouteEntry | undefined {
  return table.find(({ pattern }) => path.startsWith(pattern.slice(0, -1)));
}
