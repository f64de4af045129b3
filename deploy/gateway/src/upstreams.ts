/**
 * The processes of one service, used in turn. One that could not be reached is left out for a moment,
 * and callers do not notice it; when none is left, all are tried again.
 */
export type Upstream = { origin: URL; awayUntilMs: number };

export type Upstreams = {
  next: (nowMs: number) => Upstream;
  away: (upstream: Upstream, nowMs: number) => void;
  /** Whether there is one that could be reached when it was last tried. */
  isAnyHere: (nowMs: number) => boolean;
  origins: () => { url: string; away: boolean }[];
};

/** About what the restart of a process takes. */
const leftOutMs = 1_000;

export function createUpstreams(origins: readonly URL[]): Upstreams {
  const all: Upstream[] = origins.map((origin) => ({ origin, awayUntilMs: 0 }));
  let turn = 0;
  return {
    next(nowMs) {
      const start = turn;
      turn = (turn + 1) % all.length;
      const inTurn = all.map((_upstream, index) => all[(start + index) % all.length] as Upstream);
      return inTurn.find((upstream) => upstream.awayUntilMs <= nowMs) ?? (inTurn[0] as Upstream);
    },

    away(upstream, nowMs) {
      upstream.awayUntilMs = nowMs + leftOutMs;
    },

    isAnyHere: (nowMs) => all.some(({ awayUntilMs }) => awayUntilMs <= nowMs),

    origins: () =>
      all.map(({ origin, awayUntilMs }) => ({
        url: origin.origin,
        away: awayUntilMs > Date.now(),
      })),
  };
}
