import { createProblem, type Problem } from "@halyard/http";

/**
 * Turns of organizations: of each one, at most one request has the turn, and the others wait in the order of arrival. A
 * request waits before its body is read, so it holds neither its body nor a database connection.
 */
export type Turns = {
  /** Waits for the turn of an organization. Returns the function that ends it, or the problem if too many wait. */
  take(organizationId: string): Promise<EndTurn> | EndTurn | Problem;
};

/** Ends a turn. Further calls have no effect. */
export type EndTurn = () => void;

/**
 * Maximum number of requests of an organization that wait. Each of them is one of the concurrent requests of a gateway,
 * and the last one should not wait until the gateway gives up.
 */
const maxWaiting = 16;

export function createTurns(): Turns {
  /** The waiting requests of each organization that has a request with the turn; oldest first. */
  const queues = new Map<string, (() => void)[]>();

  function turnOf(organizationId: string): EndTurn {
    let hasEnded = false;
    return () => {
      if (hasEnded) return;
      hasEnded = true;
      const next = queues.get(organizationId)?.shift();
      if (next === undefined) queues.delete(organizationId);
      else next();
    };
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
