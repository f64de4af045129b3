/** One process of a service. */
export type Upstream = { readonly origin: URL };

/**
 * The processes of one service. A process is left out for a moment when it is unreachable, breaks a connection before
 * its answer, or answers 503 and closes the connection. There is no other health check: `slots.ts` sends each
 * request to the process with the fewest unanswered requests, so a process that does not answer receives hardly any.
 */
export type Upstreams = {
  /** The available processes. When none is available, the process that was left out first. */
  candidates: () => readonly Upstream[];
  leaveOut: (upstream: Upstream) => void;
  /** Adds a listener that is called when a process is no longer left out. */
  onAvailable: (listener: () => void) => void;
  origins: () => { url: string; away: boolean }[];
};

/** Roughly the duration of a process restart. */
const leftOutMs = 1_000;

export function createUpstreams(origins: readonly URL[]): Upstreams {
  const all = origins.map((origin): Upstream => ({ origin }));
  /** Left out last at the end. */
  const leftOut = new Map<Upstream, NodeJS.Timeout>();
  const listeners: (() => void)[] = [];
  function makeAvailable(upstream: Upstream): void {
    leftOut.delete(upstream);
    for (const listener of listeners) listener();
  }
  return {
    candidates() {
      const available = all.filter((upstream) => !leftOut.has(upstream));
      // A process that has restarted meanwhile is tried before one that is stopping.
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
