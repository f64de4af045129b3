/**
 * A limit on how often each may ask, as the generic cell rate algorithm does it: for each one who asks,
 * be it a key or an address, one instant is remembered, the one at which it would have its whole burst
 * again. A request moves that instant on by one interval; a request that would move it further ahead than
 * the burst reaches is refused and moves nothing. So nothing is counted in windows, at whose edges twice
 * as much would pass.
 *
 * It is synchronous and in memory, because an edge checks it for each request. The limit therefore holds for each
 * process; a limit for all processes would cost a round trip per request.
 *
 * When there are many instants, those of whoever has not asked for the longest time are dropped; as a
 * rule they have passed long ago, and say the same as none.
 */
export type RateLimit = {
  /** Takes one request into account, or says how long it must wait. */
  take(askerId: string, nowMs: number): Taken;
  /** How many requests may come at once now, and how long it takes until it is the whole burst again. */
  left(askerId: string, nowMs: number): { requests: number; fullInMs: number };
  readonly requestsPerSecond: number;
  /** How many requests may come at once after a pause. */
  readonly burst: number;
  /** In how many seconds a used burst is there again. */
  readonly windowSeconds: number;
};

export type Taken = { admitted: true } | { admitted: false; retryAfterMs: number };

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

/** A few megabytes. Who is forgotten while it asks may ask a little more. */
const defaultMaxKeys = 50_000;

/** This part of all is forgotten at once, so that room is made for thousands of new ones in one go. */
const forgottenShare = 1 / 16;

const admitted: Taken = { admitted: true };

export function createRateLimit(
  { requestsPerSecond, burst }: Rate,
  { maxBuckets = defaultMaxKeys }: { maxBuckets?: number } = {},
): RateLimit {
  const intervalMs = 1_000 / requestsPerSecond;
  const reachMs = burst * intervalMs;
  /** In the order in which they asked last. */
  const fullAgainAtMs = new Map<string, number>();

  /** When the burst of somebody is whole again, not before now. */
  function fullAtMs(askerId: string, nowMs: number): number {
    const known = fullAgainAtMs.get(askerId) ?? nowMs;
    // Nothing that was admitted reaches further: the clock was set back, and nobody is to wait until it
    // has come there again.
    const wasSetBack = known > nowMs + reachMs + minWaitMs;
    return wasSetBack ? nowMs : Math.max(known, nowMs);
  }

  function makeRoom(): void {
    const fewEnough = Math.floor(maxBuckets * (1 - forgottenShare));
    for (const askerId of fullAgainAtMs.keys()) {
      if (fullAgainAtMs.size <= fewEnough) return;
      fullAgainAtMs.delete(askerId);
    }
  }

  /** At the end, behind all that asked before: who is refused asks too, and is not to be forgotten for it. */
  function remember(askerId: string, atMs: number): void {
    if (!fullAgainAtMs.delete(askerId) && fullAgainAtMs.size >= maxBuckets) makeRoom();
    fullAgainAtMs.set(askerId, atMs);
  }

  return {
    requestsPerSecond,
    burst,
    windowSeconds: Math.max(1, Math.ceil(reachMs / 1_000)),
    take(askerId, nowMs) {
      const fullAt = fullAtMs(askerId, nowMs);
      const waitMs = fullAt + intervalMs - reachMs - nowMs;
      // Sums of fractions of a millisecond are not exact; what is left over is no wait.
      const isAdmitted = waitMs <= minWaitMs;
      remember(askerId, isAdmitted ? fullAt + intervalMs : fullAt);
      return isAdmitted ? admitted : { admitted: false, retryAfterMs: waitMs };
    },
    left(askerId, nowMs) {
      const fullInMs = fullAtMs(askerId, nowMs) - nowMs;
      const requests = Math.floor((reachMs - fullInMs + minWaitMs) / intervalMs);
      return { requests, fullInMs };
    },
  };
}

const minWaitMs = 1e-3;
