/**
 * Requests that wait for a change. Several edges can serve one address. A client receives a change from one edge, and
 * its next request may reach another edge that does not have the change yet. If that edge responded with the old flags,
 * an OpenFeature client would keep them, because no further event follows, and an SDK would replace its newer ones. So
 * the request waits for the next changes of its environment, for at most a second.
 *
 * The number of waiting requests is bounded, because a client can invent tags. A lower bound applies to each
 * environment, so that the clients of one environment cannot use up the total.
 */
export type WaitingRequests = {
  /**
   * Calls `resume` later: when a change has made the state known, or after the timeout. Returns a function that cancels
   * the wait. Undefined: too many requests wait, and the caller responds immediately.
   */
  wait(environmentId: string, waiting: Waiting): (() => void) | undefined;
  /** Resumes the requests of a changed environment whose state is known now. */
  changed(environmentId: string): void;
  readonly size: number;
};

type Waiting = { isKnown: () => boolean; resume: () => void };

const timeoutMs = 1_000;

/** Maximum number of waiting requests. Each takes a few kilobytes; together they take some tens of megabytes. */
export const maxWaiting = 5_000;

/**
 * Maximum number for one environment: a tenth of all. If an edge is 50 ms behind another, about this many refetches of
 * one environment arrive in that time, because their events are paced.
 */
export const maxWaitingPerEnvironment = 500;

/** Number of requests that are resumed in one turn of the event loop. Other requests are served between the turns. */
const resumedPerTurn = 20;

export function createWaitingRequests(): WaitingRequests {
  const byEnvironment = new Map<string, Map<Waiting, NodeJS.Timeout>>();
  let size = 0;

  function leave(environmentId: string, waiting: Waiting): boolean {
    const timers = byEnvironment.get(environmentId);
    const timer = timers?.get(waiting);
    if (timers === undefined || timer === undefined) return false;
    clearTimeout(timer);
    timers.delete(waiting);
    if (timers.size === 0) byEnvironment.delete(environmentId);
    size -= 1;
    return true;
  }

  function resumeSome(environmentId: string, ready: Waiting[]): void {
    for (const waiting of ready.splice(0, resumedPerTurn))
      if (leave(environmentId, waiting)) waiting.resume();
    if (ready.length > 0) setImmediate(resumeSome, environmentId, ready);
  }

  return {
    wait(environmentId, waiting) {
      const timers = byEnvironment.get(environmentId) ?? new Map<Waiting, NodeJS.Timeout>();
      if (size >= maxWaiting || timers.size >= maxWaitingPerEnvironment) return undefined;
      const timer = setTimeout(() => {
        if (leave(environmentId, waiting)) waiting.resume();
      }, timeoutMs);
      byEnvironment.set(environmentId, timers.set(waiting, timer));
      size += 1;
      return () => void leave(environmentId, waiting);
    },
    changed(environmentId) {
      const timers = byEnvironment.get(environmentId);
      if (timers === undefined) return;
      resumeSome(
        environmentId,
        [...timers.keys()].filter(({ isKnown }) => isKnown()),
      );
    },
    get size() {
      return size;
    },
  };
}
