import { createProblem, type Problem } from "@halyard/service";
import type { RateLimit } from "./rate-limit.ts";
import { retryAfter } from "./retry-after.ts";

/** Refuses whoever asks too often; undefined: it may go on. */
export type Admission = (asker: { id: string }, nowMs: number) => Problem | undefined;

/**
 * Refuses what is over a limit, with the header fields that tell the caller when to come back
 * (draft-ietf-httpapi-ratelimit-headers).
 */
export function createAdmission(limit: RateLimit, message: string): Admission {
  const policy = policyOf(limit);
  return (asker, nowMs) => {
    const taken = limit.take(asker.id, nowMs);
    if (taken.admitted) return undefined;
    // Whole seconds, and never zero: clients take that for "no limit".
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

/** The limit as a member of `RateLimit-Policy`. */
export function policyOf({ burst, windowSeconds }: RateLimit): string {
  return `"requests";q=${burst};w=${windowSeconds}`;
}
