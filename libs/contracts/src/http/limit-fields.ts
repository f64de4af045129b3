import type { ErrorCode } from "./errors.ts";
import type { RouteContract } from "./route.ts";

/**
 * Whether an answer of a route says by `RateLimit-Policy` and `RateLimit` what its caller has left, if
 * anything limits that one. Every refusal by a limit does. Beside it does what counts as a request of the
 * month, whatever is answered; but nobody knows whose a request is that comes without a valid key.
 */
export function reportsRemaining({ service }: RouteContract, problem?: ErrorCode): boolean {
  if (problem === "RATE_001") return true;
  return service === "sdk-edge" && problem !== "AUTH_001";
}
