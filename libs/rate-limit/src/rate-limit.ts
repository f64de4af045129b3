/**
 * A rate limit per caller, such as a key or an address, with the generic cell rate algorithm. For each caller it stores
 * the time at which the full burst is available again. A request moves that time forward by one interval. A request
 * that would move it further than the burst allows is rejected and changes nothing. Counting in fixed windows instead
 * would admit twice the burst around the end of a window.
 *
 * A costly request counts as several. A cost that appears only afterwards is charged then, and may leave a debt of one
 * burst at most.
 *
 * It is synchronous and in memory, because an edge checks it for each request. The limit therefore applies to each
 * process. A limit for all processes would cost a round trip per request.
 *
 * The number of stored callers is limited. Those without a request for the longest time are removed first. Their time
 * has usually passed, so their removal changes nothing.
 */
export type RateLimit = {
  /** Counts a request, or returns the time that it must wait. It counts as `cost` requests, a burst at most. */
  take(callerId: string, nowMs: number, cost?: number): Taken;
  /** Counts requests without a rejection. */
  charge(callerId: string, nowMs: number, cost: number): void;
  /** Returns the number of requests that are available now, and the time until the full burst is. */
  left(callerId: string, nowMs: number): { requests: number; fullInMs: number };
  readonly requestsPerSecond: number;
  /** Maximum number of requests at the same time. */
  readonly burst: number;
  /** Number of seconds in which a used burst becomes available again. */
  readonly windowSeconds: number;
};

type Taken = { admitted: true } | { admitted: false; retryAfterMs: number };

export type Rate = {
  requestsPerSecond: number;
  /** A whole number from 1. */
  burst: number;
};

const grouped = new Intl.NumberFormat("en-US");

/** Describes a rate for messages: `100 requests a second, with bursts of 1,000`. */
export function describeRate({ requestsPerSecond, burst }: Rate): string {
  return `${grouped.format(requestsPerSecond)} requests a second, with bursts of ${grouped.format(burst)}`;
}

/** Bounds the memory to a few megabytes. A caller that is removed too early can send a few more requests. */
const defaultMaxCallers = 50_000;

/** Share of callers that are removed at the same time, so that removals are rare. */
const removedShare = 1 / 16;

const admitted: Taken = { admitted: true };

export function createRateLimit(
  { requestsPerSecond, burst }: Rate,
  { maxBuckets = defaultMaxCallers }: { maxBuckets?: number } = {},
): RateLimit {
  const intervalMs = 1_000 / requestsPerSecond;
  const reachMs = burst * intervalMs;
  const maxDebtMs = reachMs;
  /** Time at which the full burst is available again, by caller, in the order of their last requests. */
  const fullAgainAtMs = new Map<string, number>();
  const steady = createSteadyTime();

  /** Returns the time at which a caller's full burst is available again, but not before now. */
  function fullAtMs(callerId: string, nowMs: number): number {
    return Math.max(fullAgainAtMs.get(callerId) ?? nowMs, nowMs);
  }

  function makeRoom(): void {
    const fewEnough = Math.floor(maxBuckets * (1 - removedShare));
    for (const callerId of fullAgainAtMs.keys()) {
      if (fullAgainAtMs.size <= fewEnough) return;
      fullAgainAtMs.delete(callerId);
    }
  }

  /** Stores a time at the end of the order. A rejected request counts too, otherwise its caller could be removed. */
  function store(callerId: string, atMs: number): void {
    if (!fullAgainAtMs.delete(callerId) && fullAgainAtMs.size >= maxBuckets) makeRoom();
    fullAgainAtMs.set(callerId, atMs);
  }

  return {
    requestsPerSecond,
    burst,
    windowSeconds: Math.max(1, Math.ceil(reachMs / 1_000)),
    take(callerId, clockMs, cost = 1) {
      const nowMs = steady(clockMs);
      const fullAt = fullAtMs(callerId, nowMs);
      const costMs = Math.min(cost, burst) * intervalMs;
      const waitMs = fullAt + costMs - reachMs - nowMs;
      // Sums of fractions of a millisecond are not exact, so a tiny remainder is no wait.
      const isAdmitted = waitMs <= minWaitMs;
      store(callerId, isAdmitted ? fullAt + costMs : fullAt);
      return isAdmitted ? admitted : { admitted: false, retryAfterMs: waitMs };
    },
    charge(callerId, clockMs, cost) {
      const nowMs = steady(clockMs);
      const charged = fullAtMs(callerId, nowMs) + cost * intervalMs;
      store(callerId, Math.min(charged, nowMs + reachMs + maxDebtMs));
    },
    left(callerId, clockMs) {
      const nowMs = steady(clockMs);
      const fullInMs = fullAtMs(callerId, nowMs) - nowMs;
      const requests = Math.max(0, Math.floor((reachMs - fullInMs + minWaitMs) / intervalMs));
      return { requests, fullInMs };
    },
  };
}

const minWaitMs = 1e-3;

/** Requests overtake each other by less. A larger difference is a step of the clock. */
const minStepMs = 100;

/** Returns a function that continues the time when the clock is set back. Callers must not wait until it catches up. */
function createSteadyTime(): (clockMs: number) => number {
  let aheadMs = 0;
  let latestMs = Number.NEGATIVE_INFINITY;
  return (clockMs) => {
    if (clockMs + aheadMs < latestMs - minStepMs) aheadMs = latestMs - clockMs;
    latestMs = Math.max(latestMs, clockMs + aheadMs);
    return clockMs + aheadMs;
  };
}
