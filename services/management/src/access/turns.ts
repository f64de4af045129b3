import { createProblem, type Problem } from "@halyard/http";

/**
 * Turns of organizations: of each one, at most one request has the turn, and the others wait in the order of arrival. A
 * request waits before its body is read, so it holds neither its body nor a database connection. After each turn the
 * organization rests for as long, so that its turns take at most half of the time.
 */
type Turns = {
  /** Waits for the turn of an organization. Returns the function that ends it, or the problem if too many wait. */
  take(organizationId: string): Promise<EndTurn> | EndTurn | Problem;
  /**
   * Notes that a change of a flag had a large effect, as every change of a flag with large rules has. For some seconds,
   * small changes of this flag need a turn too.
   */
  noteLargeEffect(flagId: string, nowMs: number): void;
  /** Returns whether small changes of a flag need a turn. */
  areForSmallChanges(flagId: string, nowMs: number): boolean;
};

/** Ends a turn. Further calls have no effect. */
export type EndTurn = () => void;

/**
 * Maximum number of requests of an organization that wait. The last one should not wait until the gateway gives up.
 */
const maxWaiting = 8;

/** Maximum rest. A turn can be long because it waits for a lock or for edges, which costs others nothing. */
const maxRestMs = 500;

/** Time for which small changes need a turn after a change with a large effect. */
const noteLifetimeMs = 10_000;
/** Maximum number of noted flags. The oldest notes are removed. */
const maxNotes = 1_000;

export function createTurns({
  monotonicMs,
  after,
}: {
  monotonicMs: () => number;
  /** Calls a function after some time. */
  after: (ms: number, call: () => void) => void;
}): Turns {
  /** Times of the last large effects by flag, oldest first. */
  const notedAtMs = new Map<string, number>();

  /** The waiting requests of each organization that has a request with the turn, or rests; oldest first. */
  const queues = new Map<string, (() => void)[]>();

  function turnOf(organizationId: string): EndTurn {
    const beganMs = monotonicMs();
    let hasEnded = false;
    return () => {
      if (hasEnded) return;
      hasEnded = true;
      after(Math.min(monotonicMs() - beganMs, maxRestMs), () => giveTurn(organizationId));
    };
  }

  function giveTurn(organizationId: string): void {
    const next = queues.get(organizationId)?.shift();
    if (next === undefined) queues.delete(organizationId);
    else next();
  }

  return {
    take(organizationId) {
      const queue = queues.get(organizationId);
      if (queue === undefined) {
        queues.set(organizationId, []);
        return turnOf(organizationId);
      }
      if (queue.length >= maxWaiting) return tooManyWaiting;
      return new Promise((resolve) => queue.push(() => resolve(turnOf(organizationId))));
    },
    noteLargeEffect(flagId, nowMs) {
      notedAtMs.delete(flagId);
      notedAtMs.set(flagId, nowMs);
      const [oldest] = notedAtMs.keys();
      if (notedAtMs.size > maxNotes && oldest !== undefined) notedAtMs.delete(oldest);
    },
    areForSmallChanges(flagId, nowMs) {
      const noted = notedAtMs.get(flagId);
      return noted !== undefined && nowMs - noted < noteLifetimeMs;
    },
  };
}

const tooManyWaiting = createProblem(
  "RATE_001",
  `Too many large requests of this organization: one is handled at a time in each process, and ${maxWaiting} may wait. Send fewer at the same time.`,
  {
    "retry-after": "1",
    "ratelimit-policy": `"large-requests";q=${maxWaiting + 1};qu="concurrent-requests"`,
    ratelimit: '"large-requests";r=0',
  },
);
