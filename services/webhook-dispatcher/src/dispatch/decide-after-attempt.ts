import type { SendResult } from "../sending/send.ts";

/** A delivery with an attempt in progress. The result of an attempt can change no other state. */
export type Delivering = {
  status: "delivering";
  /** Number of earlier attempts without redeliveries. */
  seriesAttempts: number;
  /** The attempt was requested after the delivery had ended. It has no retries. */
  redelivery: boolean;
  /** All earlier attempts were answered with 410. */
  goneOnly: boolean;
};

type Delivered = { status: "delivered"; goneOnly: false };
type Retrying = { status: "retrying"; afterMs: number; goneOnly: boolean };
type Failed = { status: "failed"; goneOnly: boolean };
type Cancelled = { status: "cancelled"; goneOnly: boolean };

/** The state of a delivery after an attempt. */
export type AfterAttempt = Delivered | Retrying | Failed;

const gone = 410;

/** Decides the next state of a delivery. `random` is from 0 to 1. */
export function decideAfterAttempt(
  delivering: Delivering,
  result: SendResult,
  options: { plan: RetryPlan; random: number },
): AfterAttempt {
  if (wasDelivered(result)) return { status: "delivered", goneOnly: false };
  const goneOnly = delivering.goneOnly && result.kind === "answered" && result.status === gone;
  const afterMs = delivering.redelivery
    ? undefined
    : retryDelayMs(options.plan, {
        attempts: delivering.seriesAttempts + 1,
        result,
        random: options.random,
      });
  return afterMs === undefined
    ? { status: "failed", goneOnly }
    : { status: "retrying", afterMs, goneOnly };
}

/** Cancels the retry if the webhook was disabled or deleted during the attempt. */
export function decideWhetherToRetry(
  next: Retrying,
  webhook: { enabled: boolean } | undefined,
): Retrying | Cancelled {
  return webhook?.enabled === true ? next : { status: "cancelled", goneOnly: next.goneOnly };
}

/** Returns whether the target responded to this attempt with 410. */
export const saysGone = (attempt: { statusCode: number | null }): boolean =>
  attempt.statusCode === gone;

/** Returns whether a delivery has failed and the target responded to every attempt with 410. */
export const saysGoneForGood = (next: AfterAttempt): boolean =>
  next.status === "failed" && next.goneOnly;

/**
 * Time after which an attempt counts as slow, with any response. A slow target delays others almost like a hanging one.
 * Healthy targets respond within a second, even during a restart or a garbage collection.
 */
const longMs = 5_000;

export const tookLong = (result: SendResult): boolean =>
  result.durationMs > longMs || (result.kind === "failed" && result.timedOut);

/** Returns whether the target responded with 2xx. A redirect is not followed and counts as a failure. */
export const wasDelivered = (result: SendResult): boolean =>
  result.kind === "answered" && result.status >= 200 && result.status < 300;

/** Delay before each retry. The number of delays is the number of retries. */
export type RetryPlan = readonly number[];

/** Jitter as a share of the delay. Without it, all deliveries of a failed target are retried at the same moment. */
const jitterShare = 0.1;
/** Upper bound on the delay in `Retry-After`. */
const maxRetryAfterMs = 24 * 60 * 60 * 1_000;
/** Statuses whose `Retry-After` is observed: Too Many Requests and Service Unavailable. */
const statusesWithRetryAfter = [429, 503];

/**
 * Returns the delay before the retry after `attempts` attempts; undefined if no retry is left. `random` is from 0
 * to 1.
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
  return Math.min(result.retryAfterMs ?? 0, maxRetryAfterMs);
}
