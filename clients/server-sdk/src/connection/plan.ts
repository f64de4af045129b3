import type { PollResult } from "./fetch-rules.ts";
import type { StreamEnd } from "./read-stream.ts";

/**
 * The plan of a connection: the times of its next attempts. It is a pure function of what happened. The client does one
 * thing at a time, so that the result of a poll can never overwrite a later event of a stream.
 *
 * - A stream that ends or fails is opened again after a backoff with full jitter, at most 30 s.
 * - After two failures in a row, the client also polls.
 * - A stream that is refused (429, a response that no edge sends) or held back by a proxy is tried again after 30 s, the
 *   time within which the slot of a lost stream becomes free, and then at growing intervals up to five minutes. The
 *   client polls meanwhile.
 * - `Retry-After` delays the request that it was sent for.
 */
export type Plan = {
  /** Consecutive attempts at a stream that did not last. */
  readonly failures: number;
  readonly pollFailures: number;
  readonly streamAtMs: number;
  /** Earliest time of a stream by `Retry-After`, also after a suspension. */
  readonly streamNotBeforeMs: number;
  /** False while streams work. */
  readonly polls: boolean;
  readonly pollAtMs: number;
  readonly pollNotBeforeMs: number;
  /** True if the last stream sent nothing. If a poll then succeeds, a proxy is holding the stream back. */
  readonly isHeldBack: boolean;
};

type Step = { kind: "stream" | "poll"; atMs: number };

export type PlanContext = { nowMs: number; random: () => number; pollIntervalMs: number };

const maxBackoffMs = 30_000;
const minBackoffMs = 100;
const defaultBaseMs = 1_000;
/** Time after which an open stream counts as a success. */
const lastedMs = 30_000;
/** The same for a stream that stalled. A proxy that holds back small events stalls every stream. */
const stalledLastedMs = 300_000;
const firstRefusedRetryMs = 30_000;
const maxRefusedRetryMs = 300_000;
const failuresBeforePolling = 2;
/** Fraction of an interval that is added or subtracted at random. */
const jitter = 0.1;

export function firstPlan(nowMs: number): Plan {
  return {
    ...{ failures: 0, pollFailures: 0, polls: false, isHeldBack: false },
    ...{ streamAtMs: nowMs, streamNotBeforeMs: nowMs, pollAtMs: nowMs, pollNotBeforeMs: nowMs },
  };
}

export function nextStep({ polls, pollAtMs, streamAtMs }: Plan): Step {
  return polls && pollAtMs <= streamAtMs
    ? { kind: "poll", atMs: pollAtMs }
    : { kind: "stream", atMs: streamAtMs };
}

/** Returns the plan after a suspension: immediate attempts, except those that `Retry-After` delays. */
export function afterResume(plan: Plan, nowMs: number): Plan {
  return {
    ...plan,
    failures: 0,
    streamAtMs: Math.max(nowMs, plan.streamNotBeforeMs),
    pollAtMs: Math.max(nowMs, plan.pollNotBeforeMs),
  };
}

/** The end of a stream; `openMs` is the time since it confirmed the flags, 0 if it never did. */
type EndedStream = { end: StreamEnd; openMs: number; retryMs: number | undefined };

export function afterStream(
  plan: Plan,
  { end, openMs, retryMs }: EndedStream,
  context: PlanContext,
): Plan {
  const { nowMs, random } = context;
  const retryAfterMs = end.kind === "rejected" ? jittered(end.retryAfterMs ?? 0, random) : 0;
  const streamNotBeforeMs = nowMs + retryAfterMs;
  const hasLasted = openMs >= (end.kind === "stalled" ? stalledLastedMs : lastedMs);
  const failures = (hasLasted ? 0 : plan.failures) + 1;
  const delayMs = isRefused(end)
    ? refusedDelay(failures, random)
    : backoff(failures, retryMs ?? defaultBaseMs, random);
  const polls =
    isRefused(end) ||
    end.kind === "silent" ||
    end.kind === "invalid_data" ||
    failures >= failuresBeforePolling;
  return {
    ...plan,
    failures,
    streamAtMs: Math.max(nowMs + delayMs, streamNotBeforeMs),
    streamNotBeforeMs,
    polls,
    pollAtMs: Math.max(nowMs, plan.pollAtMs),
    isHeldBack: end.kind === "silent",
  };
}

export function afterPoll(plan: Plan, result: PollResult, context: PlanContext): Plan {
  const { nowMs, random, pollIntervalMs } = context;
  if (result.kind === "rules" || result.kind === "unchanged") {
    const streamAtMs = nowMs + refusedDelay(plan.failures, random);
    return {
      ...plan,
      ...{
        pollFailures: 0,
        pollAtMs: nowMs + around(pollIntervalMs, random),
        pollNotBeforeMs: nowMs,
      },
      ...(plan.isHeldBack ? { streamAtMs, isHeldBack: false } : {}),
    };
  }
  const pollFailures = plan.pollFailures + 1;
  const retryAfterMs = result.kind === "rejected" ? jittered(result.retryAfterMs ?? 0, random) : 0;
  const delayMs = Math.min(
    around(pollIntervalMs, random),
    backoff(pollFailures, defaultBaseMs, random),
  );
  const pollNotBeforeMs = nowMs + retryAfterMs;
  return {
    ...plan,
    pollFailures,
    pollAtMs: Math.max(nowMs + delayMs, pollNotBeforeMs),
    pollNotBeforeMs,
    isHeldBack: false,
  };
}

/** Returns whether the client stops for good. */
export function isFinal(result: StreamEnd | PollResult): boolean {
  return result.kind === "rejected" && result.isOfKey;
}

/** Returns whether the service does not offer a stream. Server errors pass sooner. */
function isRefused(end: StreamEnd): boolean {
  return end.kind === "not_a_stream" || (end.kind === "rejected" && end.status < 500);
}

/** Full jitter: clients that were disconnected together return spread over the whole backoff. */
function backoff(failures: number, baseMs: number, random: () => number): number {
  const limitMs = Math.min(maxBackoffMs, Math.max(minBackoffMs, baseMs) * 2 ** (failures - 1));
  return Math.max(minBackoffMs, random() * limitMs);
}

function refusedDelay(failures: number, random: () => number): number {
  const delayMs = Math.min(maxRefusedRetryMs, firstRefusedRetryMs * 2 ** (failures - 1));
  return around(delayMs, random);
}

function around(intervalMs: number, random: () => number): number {
  return intervalMs * (1 - jitter + 2 * jitter * random());
}

/** A delay of the service, lengthened so that clients do not return in the same instant. Never shortened. */
function jittered(delayMs: number, random: () => number): number {
  return delayMs * (1 + jitter * random());
}
