import type { PollResult } from "./fetch-rules.ts";
import type { StreamEnd } from "./read-stream.ts";

/**
 * The plan of a connection: the times of its next attempts. It is a pure function of what happened. The client does one
 * thing at a time, so that the result of a poll can never overwrite a later event of a stream.
 *
 * - After a stream has ended or failed, the client makes one attempt in each period of 5.5 s, at a random phase that it
 *   keeps. So the attempts of many clients are spread evenly, and all of them reach a service that returns within one
 *   period. There is no backoff, because it would delay clients after a long outage.
 * - After a minute without a stream, the client also polls. That poll takes the place of one attempt at a stream.
 * - Streams that are confirmed but do not last are opened less often after the third, because each counts as a request.
 * - A stream that is refused (429, a response that no edge sends) or held back by a proxy is tried again after 30 s, the
 *   time within which the slot of a lost stream becomes free, and then at growing intervals up to five minutes. The
 *   client polls meanwhile.
 * - `Retry-After` delays the request that it was sent for.
 */
export type Plan = {
  /** Attempts are made at this time plus a multiple of the period. */
  readonly phaseMs: number;
  /** Consecutive attempts at a stream that never confirmed the flags. */
  readonly failures: number;
  /** Consecutive streams that confirmed the flags and did not last. */
  readonly shortStreams: number;
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

/**
 * Period of the attempts. With 10,000 clients it means 1,818 requests a second, which leaves a random second below 2,000.
 * All clients are connected within it, which leaves half a second until 6 s for the response.
 */
const periodMs = 5_500;
/** Timers can fire early, and a turn must not have two attempts. */
const minPauseMs = 100;
/** Time after which an open stream counts as a success. */
const lastedMs = 30_000;
/** The same for a stream that stalled. A proxy that holds back small events stalls every stream. */
const stalledLastedMs = 300_000;
/** The edges of a rolling restart can each end a stream. */
const shortStreamsBeforeBackoff = 3;
const maxBackoffMs = 30_000;
const firstRefusedRetryMs = 30_000;
const maxRefusedRetryMs = 300_000;
/** About a minute. A restart takes less, and then each client sends one request. */
const failuresBeforePolling = 11;
/** Fraction of an interval that is added or subtracted at random. */
const jitter = 0.1;

export function firstPlan(nowMs: number, random: () => number): Plan {
  return {
    phaseMs: nowMs + random() * periodMs,
    ...{ failures: 0, shortStreams: 0, polls: false, isHeldBack: false },
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
    ...{ failures: 0, shortStreams: 0 },
    streamAtMs: Math.max(nowMs, plan.streamNotBeforeMs),
    pollAtMs: Math.max(nowMs, plan.pollNotBeforeMs),
  };
}

/** The end of a stream; `openMs` is the time since it confirmed the flags, undefined if it never did. */
type EndedStream = { end: StreamEnd; openMs: number | undefined };

export function afterStream(plan: Plan, ended: EndedStream, context: PlanContext): Plan {
  const { end, openMs } = ended;
  const { nowMs, random } = context;
  const retryAfterMs = end.kind === "rejected" ? jittered(end.retryAfterMs ?? 0, random) : 0;
  const streamNotBeforeMs = nowMs + retryAfterMs;
  const failures = openMs === undefined ? plan.failures + 1 : 0;
  const shortStreams = countShortStreams(plan, ended);
  const isShort = openMs !== undefined && shortStreams > shortStreamsBeforeBackoff;
  const streamAtMs = isRefused(end)
    ? Math.max(nowMs + refusedDelay(failures, random), streamNotBeforeMs)
    : nextTurn(plan, isShort ? nowMs + backoff(shortStreams, random) : streamNotBeforeMs);
  const pollsAtOnce = isRefused(end) || end.kind === "silent" || end.kind === "invalid_data";
  return {
    ...{ ...plan, failures, shortStreams, streamAtMs, streamNotBeforeMs },
    polls: pollsAtOnce || isShort || failures >= failuresBeforePolling,
    pollAtMs: Math.max(pollsAtOnce || isShort ? nowMs : streamAtMs, plan.pollAtMs),
    // Without a response, the edge may hang. Another one may serve the next stream.
    isHeldBack: end.kind === "silent" && (end.hasResponse || failures > 1),
  };
}

export function afterPoll(plan: Plan, result: PollResult, context: PlanContext): Plan {
  const { nowMs, random, pollIntervalMs } = context;
  const isReplaced = plan.streamAtMs <= nowMs;
  const streamAtMs = isReplaced ? nextTurn(plan, nowMs) : plan.streamAtMs;
  const atNextInterval = nowMs + around(pollIntervalMs, random);
  if (result.kind === "rules" || result.kind === "unchanged")
    return {
      ...plan,
      ...{ pollAtMs: atNextInterval, pollNotBeforeMs: nowMs, isHeldBack: false },
      streamAtMs: plan.isHeldBack ? nowMs + refusedDelay(plan.failures, random) : streamAtMs,
    };
  const retryAfterMs = result.kind === "rejected" ? jittered(result.retryAfterMs ?? 0, random) : 0;
  const pollNotBeforeMs = nowMs + retryAfterMs;
  // While streams fail too, one request in each period is enough.
  const pollAtMs = isReplaced ? atNextInterval : nextTurn(plan, nowMs);
  return {
    ...{ ...plan, streamAtMs, pollNotBeforeMs, isHeldBack: false },
    pollAtMs: Math.max(pollAtMs, pollNotBeforeMs),
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

function countShortStreams({ shortStreams }: Plan, { end, openMs }: EndedStream): number {
  if (openMs === undefined) return shortStreams;
  return openMs >= (end.kind === "stalled" ? stalledLastedMs : lastedMs) ? 0 : shortStreams + 1;
}

/** Returns the first time after `afterMs` and a pause at which this client makes an attempt. */
function nextTurn({ phaseMs }: Plan, afterMs: number): number {
  return phaseMs + Math.ceil((afterMs + minPauseMs - phaseMs) / periodMs) * periodMs;
}

function backoff(shortStreams: number, random: () => number): number {
  const limitMs = periodMs * 2 ** (shortStreams - shortStreamsBeforeBackoff);
  return random() * Math.min(maxBackoffMs, limitMs);
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
