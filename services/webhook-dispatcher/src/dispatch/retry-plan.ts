import type { SendResult } from "../sending/send.ts";

/** How long after each failed attempt the next one is made; as many retries as there are delays. */
export type RetryPlan = readonly number[];

/** A target that was away for all of its webhooks is not told by all of them at the same moment. */
const jitterShare = 0.1;
/** A target may ask to be left alone for this long at most. */
const longestRetryAfterMs = 24 * 60 * 60 * 1_000;
/** The answers whose `Retry-After` counts: too many requests, and unavailable for now. */
const statusesWithRetryAfter = [429, 503];

/**
 * How long to wait before the retry that follows so many attempts; undefined when there is none left.
 * `random` is from 0 to 1.
 */
export function retryDelayMs(
  plan: RetryPlan,
  options: { attempts: number; result: SendResult; random: number },
): number | undefined {
  const plannedMs = plan[options.attempts - 1];
  if (plannedMs === undefined) return undefined;
  const delayMs = Math.round(plannedMs * (1 + jitterShare * options.random));
  return Math.max(delayMs, askedForMs(options.result));
}

function askedForMs(result: SendResult): number {
  if (result.kind === "failed" || !statusesWithRetryAfter.includes(result.status)) return 0;
  return Math.min(result.retryAfterMs ?? 0, longestRetryAfterMs);
}
