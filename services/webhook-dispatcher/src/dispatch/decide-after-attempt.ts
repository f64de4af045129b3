import type { SendResult } from "../sending/send.ts";

/** A delivery while an attempt is made: the only state that an attempt's result can lead on from. */
export type Delivering = {
  status: "delivering";
  /** How many attempts the event itself has brought about before this one. */
  seriesAttempts: number;
  /** A person asked for this attempt after the delivery had ended: it has no retries. */
  redelivery: boolean;
  /** Every attempt before this one was answered 410. */
  goneOnly: boolean;
};

type Delivered = { status: "delivered"; goneOnly: false };
type Retrying = { status: "retrying"; afterMs: number; goneOnly: boolean };
type Failed = { status: "failed"; goneOnly: boolean };
type Cancelled = { status: "cancelled"; goneOnly: boolean };

/** What an attempt's result makes of a delivery. */
export type AfterAttempt = Delivered | Retrying | Failed;

const gone = 410;

/** `random` is from 0 to 1. */
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

/** What was switched off, or deleted, while the attempt was made is not tried again. */
export function decideWhetherToRetry(
  next: Retrying,
  webhook: { enabled: boolean } | undefined,
): Retrying | Cancelled {
  return webhook?.enabled === true ? next : { status: "cancelled", goneOnly: next.goneOnly };
}

/** Whether a target has said in this attempt that it is gone for good. */
export const saysGone = (attempt: { statusCode: number | null }): boolean =>
  attempt.statusCode === gone;

/** Whether a target has said in every attempt of a delivery that it is gone for good. */
export const saysGoneForGood = (next: AfterAttempt): boolean =>
  next.status === "failed" && next.goneOnly;

/**
 * A target that takes longer, whatever it answers then, holds what an attempt takes as one does that hangs.
 * Good ones answer within a second, even while they start anew or collect garbage.
 */
const longMs = 5_000;

export const tookLong = (result: SendResult): boolean =>
  result.durationMs > longMs || (result.kind === "failed" && result.timedOut);

/** A redirect is not followed, and is no delivery. */
export const wasDelivered = (result: SendResult): boolean =>
  result.kind === "answered" && result.status >= 200 && result.status < 300;

/** How long after each failed attempt the next one is made; as many retries as there are delays. */
export type RetryPlan = readonly number[];

/** A target that was away for all of its webhooks is not told by all of them at the same moment. */
const jitterShare = 0.1;
/** A target may ask to be left alone for this long at most. */
const maxRetryAfterMs = 24 * 60 * 60 * 1_000;
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
  return Math.min(result.retryAfterMs ?? 0, maxRetryAfterMs);
}
