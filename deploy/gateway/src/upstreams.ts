/** One process of a service. */
export type Upstream = { readonly origin: URL };

/**
 * The processes of one service. A process is excluded for a moment if it is unreachable, breaks a connection before its
 * response, or responds with 503 and closes the connection. There is no other health check: `slots.ts` sends each
 * request to the process with the fewest unanswered requests, so a stuck process receives hardly any.
 */
export type Upstreams = {
  /** Returns the available processes. If none is available, returns the one that was excluded first. */
  candidates: () => readonly Upstream[];
  leaveOut: (upstream: Upstream) => void;
  /** Adds a listener that is called when an excluded process becomes available again. */
  onAvailable: (listener: () => void) => void;
  origins: () => { url: string; away: boolean }[];
};

/** Time for which a process is excluded: roughly the duration of a restart. */
const leftOutMs = 1_000;

export function createUpstreams(origins: readonly URL[]): Upstreams {
  const all = origins.map((origin): Upstream => ({ origin }));
  /** The excluded processes in the order of their exclusion. */
  const leftOut = new Map<Upstream, NodeJS.Timeout>();
  const listeners: (() => void)[] = [];
  function makeAvailable(upstream: Upstream): void {
    leftOut.delete(upstream);
    for (const listener of listeners) listener();
  }
  return {
    candidates() {
      const available = all.filter((upstream) => !leftOut.has(upstream));
      // The process that was excluded first has most likely restarted; a later one may still be stopping.
      return available.length > 0 ? available : [...leftOut.keys()].slice(0, 1);
    },
    leaveOut(upstream) {
      clearTimeout(leftOut.get(upstream));
      leftOut.delete(upstream);
      leftOut.set(upstream, setTimeout(makeAvailable, leftOutMs, upstream).unref());
    },
    onAvailable: (listener) => void listeners.push(listener),
    origins: () =>
      all.map((upstream) => ({ url: upstream.origin.origin, away: leftOut.has(upstream) })),
  };
}
