import { createProblem, type Problem } from "@halyard/http";
import type { RateLimit } from "./rate-limit.ts";
import { retryAfter } from "./retry-after.ts";

/** Returns the problem of a request beyond the rate limit; undefined for an admitted request. */
type Admission = (caller: { id: string }, nowMs: number, cost?: number) => Problem | undefined;

/**
 * Creates an admission check whose problems have the header fields for the time of the next request
 * (draft-ietf-httpapi-ratelimit-headers).
 */
export function createAdmission(limit: RateLimit, message: string): Admission {
  const policy = policyOf(limit);
  return (caller, nowMs, cost) => {
    const taken = limit.take(caller.id, nowMs, cost);
    if (taken.admitted) return undefined;
    // Whole seconds, and never zero, which clients would treat as "no limit".
    const seconds = Math.max(1, Math.ceil(taken.retryAfterMs / 1_000));
    return createProblem("RATE_001", message, {
      "retry-after": retryAfter(seconds),
      "ratelimit-policy": policy,
      ratelimit: `"requests";r=0;t=${seconds}`,
    });
  };
}

/** The members of the fields `RateLimit-Policy` and `RateLimit` for one limit. Both fields are lists. */
export type LimitMember = { readonly policy: string; readonly limit: string };

/** Returns the limit as a member of `RateLimit-Policy`. */
export function policyOf({ burst, windowSeconds }: RateLimit): string {
  return `"requests";q=${burst};w=${windowSeconds}`;
}
