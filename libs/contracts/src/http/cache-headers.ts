import type { RouteContract } from "./route.ts";

/** Request headers with the user's context, in the order of the document. */
export const userHeaders = [
  "X-User-Context",
  "X-User-ID",
  "X-User-Email",
  "X-User-Attributes",
] as const;

export type CacheHeaders = { "Cache-Control"?: string; Vary?: string };

/**
 * Returns the headers that say who may store the successful answers of a route. The answers of a route with
 * `cacheControl` may be stored for longer than its errors.
 */
export function cacheHeadersOf(contract: RouteContract): CacheHeaders {
  const { cacheControl } = contract;
  const headers = defaultCacheHeadersOf(contract);
  return cacheControl === undefined ? headers : { ...headers, "Cache-Control": cacheControl };
}

/**
 * Returns the headers of the routes of a kind. No cache stores a key or a stream. Other reads depend on the caller's
 * key, so that only the caller's own cache stores them, and it revalidates them before use.
 */
export function defaultCacheHeadersOf(contract: RouteContract): CacheHeaders {
  const { access, method, readsUser, service, success, carriesKey } = contract;
  if (carriesKey === true || success.contentType === "text/event-stream")
    return { "Cache-Control": "no-store" };
  if (method !== "GET" && service !== "sdk-edge") return {};
  const vary = ["Authorization"];
  if (access === "any_key_in_either_header") vary.push("X-API-Key");
  if (readsUser === true) vary.push(...userHeaders);
  return { "Cache-Control": "private, no-cache", Vary: vary.join(", ") };
}
