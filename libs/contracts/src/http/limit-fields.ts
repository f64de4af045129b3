import type { ErrorCode } from "./errors.ts";
import type { RouteContract } from "./route.ts";

/**
 * Returns whether a response of a route has `RateLimit-Policy` and `RateLimit`, provided that the caller has a limit.
 * Every rejection by a limit has them. So has every other response to an SDK. A request
 * without a valid key has no caller whose limits could be reported.
 */
export function reportsRemaining({ service }: RouteContract, problem?: ErrorCode): boolean {
  if (problem === "RATE_001") return true;
  return service === "sdk-edge" && problem !== "AUTH_001";
}
