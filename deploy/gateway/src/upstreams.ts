/** One process of a service. */
export type Upstream = { readonly origin: URL; unavailableUntilMs: number };

/**
 * The processes of one service. A process is left out for a moment when it is unreachable, breaks a connection before
 * its answer, or answers 503 and closes the connection. There is no other health check: `slots.ts` sends each
 * request to the process with the fewest unanswered requests, so a process that does not answer receives hardly any.
 */
export type Upstreams = {
  /** The available processes. When none is available, the process that was left out first. */
  candidates: () => readonly Upstream[];
  leaveOut: (upstream: Upstream) => void;
  origins: () => { url: string; away: boolean }[];
};

/** Roughly the duration of a process restart. */
const leftOutMs = 1_000;

export function createUpstreams(origins: readonly URL[]): Upstreams {
  const all = origins.map((origin): Upstream => ({ origin, unavailableUntilMs: 0 }));
  /** Left out last at the end. */
  const byLeavingOut = [...all];
  const available = () => {
    const nowMs = Date.now();
    return all.filter(({ unavailableUntilMs }) => unavailableUntilMs <= nowMs);
  };
  return {
    candidates() {
      const some = available();
      // A process that has restarted meanwhile is tried before one that is stopping.
      return some.length > 0 ? some : byLeavingOut.slice(0, 1);
    },
    leaveOut(upstream) {
      byLeavingOut.push(...byLeavingOut.splice(byLeavingOut.indexOf(upstream), 1));
      upstream.unavailableUntilMs = Date.now() + leftOutMs;
    },
    origins() {
      const some = available();
      return all.map((upstream) => ({
        url: upstream.origin.origin,
        away: !some.includes(upstream),
      }));
    },
  };
}
