import { environmentHeader, needOf } from "./needed-roles.ts";
import { isEventStream, type RouteContract } from "./route.ts";

/** Request headers with the user's context, in the order of the document. */
export const userHeaders = [
  "X-User-Context",
  "X-User-ID",
  "X-User-Email",
  "X-User-Attributes",
] as const;

type CacheHeaders = { "Cache-Control"?: string; Vary?: string };

/**
 * Returns the cache headers of the successful responses of a route. With `cacheControl`, caches may store these
 * responses for longer than the route's errors.
 */
export function cacheHeadersOf(contract: RouteContract): CacheHeaders {
  const { cacheControl } = contract;
  const headers = defaultCacheHeadersOf(contract);
  return cacheControl === undefined ? headers : { ...headers, "Cache-Control": cacheControl };
}

/**
 * Returns the cache headers for the kind of a route. No cache stores an API key or a stream. Other reads depend on the
 * caller's key: only a private cache may store them, and it revalidates them before each use.
 */
export function defaultCacheHeadersOf(contract: RouteContract): CacheHeaders {
  const { access, method, readsUser, service, carriesKey, compressed } = contract;
  if (carriesKey === true || isEventStream(contract)) return { "Cache-Control": "no-store" };
  if (method !== "GET" && service !== "sdk-edge") return {};
  const vary = ["Authorization"];
  if (needOf(contract) !== undefined) vary.push("Cookie", environmentHeader);
  if (access === "any_key_in_either_header") vary.push("X-API-Key");
  if (readsUser === true) vary.push(...userHeaders);
  if (compressed === true) vary.push("Accept-Encoding");
  return { "Cache-Control": "private, no-cache", Vary: vary.join(", ") };
}
