/**
 * Decides what follows an attempt to reach the edge. The client streams. Where streams are refused, cut or held back,
 * it polls, and tries the stream again from time to time.
 */

export type Outcome =
  /** The stream delivered events until its end. */
  | { kind: "streamed"; livedMs: number; retryMs: number }
  /** The poll brought values, or confirmed them. */
  | { kind: "polled" }
  /** No event stream, or no event in time: a proxy collects the response. */
  | { kind: "held_back" }
  /** An error response, or with status 0 no valid response at all. */
  | { kind: "failed"; by: Route; status: number; retryAfterMs: number };

export type Route = "stream" | "poll";

export type State = {
  /** Failures in a row, of any kind. */
  readonly failures: number;
  /** Failures of the stream in a row, between which all polls succeeded. */
  readonly streamFailures: number;
  /** Polls until the stream is tried again. */
  readonly polls: number;
};

type Step = { state: State; waitMs: number } | "stop";

/** Returns the first state. A context that is too large for a header cannot be streamed. */
export function firstState(streams: boolean): State {
  return { failures: 0, streamFailures: 0, polls: streams ? 0 : Number.POSITIVE_INFINITY };
}

const pollIntervalMs = 60_000;
const maxBackoffMs = 30_000;
/** Streams that end sooner count as failures: a proxy cuts them. */
const minStreamMs = 30_000;
/** Failures of the stream in a row after which the client polls for a while. */
const maxStreamFailures = 3;
/** Polls between two attempts of a refused stream: about five minutes. */
const pollsBetweenStreams = 5;

/** Returns the next state, and the wait before the next attempt. `random` is from 0 to 1. */
export function nextStep(state: State, outcome: Outcome, random: number): Step {
  const failures = state.failures + 1;
  switch (outcome.kind) {
    case "polled":
      return afterPoll(state, random);
    case "streamed": {
      const next = { ...firstState(true), failures: outcome.livedMs < minStreamMs ? failures : 0 };
      return { state: next, waitMs: Math.max(outcome.retryMs, backoffMs(next.failures, random)) };
    }
    case "held_back":
      return { state: { ...state, failures, polls: pollsBetweenStreams }, waitMs: 0 };
    case "failed":
      return afterFailure({ ...state, failures }, outcome, random);
  }
}

function afterFailure(
  state: State,
  { by, status, retryAfterMs }: Extract<Outcome, { kind: "failed" }>,
  random: number,
): Step {
  const { failures, polls } = state;
  if (status === 401 || status === 403) return "stop";
  const isOutage = status === 0 || status >= 500;
  const backoff = backoffMs(failures, random);
  if (by === "poll") {
    // The edge cannot be reached at all, so the stream is not to blame and is tried next.
    const waitMs = isOutage || status === 429 ? backoff : pollDelayMs(random);
    const next = { ...firstState(Number.isFinite(polls)), failures };
    return { state: next, waitMs: Math.max(retryAfterMs, waitMs) };
  }
  const pollsBefore = Math.max(pollsBetweenStreams, Math.ceil(retryAfterMs / pollIntervalMs));
  if (!isOutage) return { state: { ...state, polls: pollsBefore }, waitMs: 0 };
  // One poll follows, which shows whether the edge can be reached at all.
  const streamFailures = state.streamFailures + 1;
  return {
    state: {
      failures,
      streamFailures,
      polls: streamFailures < maxStreamFailures ? 1 : pollsBefore,
    },
    waitMs: status === 0 ? backoff : 0,
  };
}

function afterPoll({ streamFailures, polls }: State, random: number): Step {
  const retriesStream = streamFailures > 0 && streamFailures < maxStreamFailures;
  return {
    state: { failures: 0, streamFailures, polls: retriesStream ? 0 : Math.max(0, polls - 1) },
    waitMs: retriesStream ? backoffMs(streamFailures, random) : pollDelayMs(random),
  };
}

/** Full jitter: a random time up to a bound that doubles with each failure. */
function backoffMs(failures: number, random: number): number {
  return random * Math.min(maxBackoffMs, 1_000 * 2 ** failures);
}

/** The poll interval with 10% of jitter to both sides. */
function pollDelayMs(random: number): number {
  return pollIntervalMs * (0.9 + 0.2 * random);
}
