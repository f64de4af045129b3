/**
 * The processes of one service, used in turn. One that could not be reached is left out for a moment,
 * and callers do not notice it. One that is stuck takes requests and answers none: it is left out while
 * requests wait there and nothing has been answered for some time. It is doubted when they have ended in
 * vain, and then gets one request at a time, until it answers one; so a stuck process costs one caller
 * now and then, and not its share of them all. When none is left, all are tried again.
 */
export type Upstream = {
  readonly origin: URL;
  awayUntilMs: number;
  /** Requests that have been sent there and have not been answered yet. */
  waiting: number;
  /** Since when there was no answer, while requests wait. */
  quietSinceMs: number;
  doubted: boolean;
};

export type Upstreams = {
  next: (nowMs: number) => Upstream;
  away: (upstream: Upstream, nowMs: number) => void;
  /** A request waits there from now on; answers what is to be told when it does not any more. */
  waits: (upstream: Upstream, nowMs: number) => Waiting;
  /** Whether there is one that could be reached when it was last tried. */
  isAnyHere: (nowMs: number) => boolean;
  /** Away is also who is doubted. */
  origins: () => { url: string; away: boolean }[];
};

/** Only the first word counts. */
export type Waiting = {
  answered: (nowMs: number) => void;
  /** Nobody waits for the answer any more. */
  ended: (nowMs: number) => void;
};

/** About what the restart of a process takes. */
const leftOutMs = 1_000;

/** Longer than nearly every answer takes. Who is wrongly taken for stuck gets less to do for a moment. */
const quietAfterMs = 3_000;

export function createUpstreams(origins: readonly URL[]): Upstreams {
  const all = origins.map(
    (origin): Upstream => ({
      origin,
      awayUntilMs: 0,
      waiting: 0,
      quietSinceMs: 0,
      doubted: false,
    }),
  );
  let turn = 0;
  return {
    next(nowMs) {
      const start = turn;
      turn = (turn + 1) % all.length;
      const inTurn = all.map((_upstream, index) => all[(start + index) % all.length] as Upstream);
      const here = inTurn.filter((upstream) => isHere(upstream, nowMs));
      return (
        here.find((upstream) => !isStuck(upstream, nowMs)) ?? here[0] ?? (inTurn[0] as Upstream)
      );
    },

    away(upstream, nowMs) {
      upstream.awayUntilMs = nowMs + leftOutMs;
    },

    waits: startWaiting,

    isAnyHere: (nowMs) => all.some((upstream) => isHere(upstream, nowMs)),

    origins: () =>
      all.map((upstream) => ({
        url: upstream.origin.origin,
        away: upstream.doubted || !isHere(upstream, Date.now()),
      })),
  };
}

function startWaiting(upstream: Upstream, sinceMs: number): Waiting {
  if (upstream.waiting === 0) upstream.quietSinceMs = sinceMs;
  upstream.waiting += 1;
  let isOver = false;
  const end = (tell: () => void) => {
    if (isOver) return;
    isOver = true;
    tell();
    upstream.waiting -= 1;
  };
  return {
    answered: (nowMs) =>
      end(() => {
        upstream.quietSinceMs = nowMs;
        upstream.doubted = false;
      }),
    ended: (nowMs) =>
      end(() => {
        upstream.doubted ||= isStuck(upstream, nowMs);
      }),
  };
}

function isHere({ awayUntilMs }: Upstream, nowMs: number): boolean {
  return awayUntilMs <= nowMs;
}

function isStuck({ waiting, doubted, quietSinceMs }: Upstream, nowMs: number): boolean {
  return waiting > 0 && (doubted || nowMs - quietSinceMs >= quietAfterMs);
}
