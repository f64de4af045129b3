import type { Clock } from "../../src/clock.ts";

/** A clock that only a test moves. Timers fire in `advance`, in the order of their times. */
export type ManualClock = Clock & {
  advance(ms: number): void;
  /** The delays of the pending timers, in ascending order. */
  pending(): number[];
};

export function createManualClock(): ManualClock {
  let nowMs = Date.UTC(2026, 0, 1);
  const timers = new Set<{ atMs: number; callback: () => void }>();
  const next = (untilMs: number) =>
    [...timers]
      .filter(({ atMs }) => atMs <= untilMs)
      .sort((one, other) => one.atMs - other.atMs)[0];
  return {
    now: () => nowMs,
    random: () => 0.5,
    after(ms, callback) {
      const timer = { atMs: nowMs + ms, callback };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    advance(ms) {
      const untilMs = nowMs + ms;
      for (let timer = next(untilMs); timer !== undefined; timer = next(untilMs)) {
        timers.delete(timer);
        nowMs = Math.max(nowMs, timer.atMs);
        timer.callback();
      }
      nowMs = untilMs;
    },
    pending: () => [...timers].map(({ atMs }) => atMs - nowMs).sort((one, other) => one - other),
  };
}
