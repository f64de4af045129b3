import type { Clock } from "../../src/platform.ts";

export type FakeClock = Clock & {
  /** Lets time pass, and runs the timers that are due, in order. */
  advance(ms: number): void;
  /** Like `advance`, but waits for pending promises and callbacks after each timer. */
  run(ms: number): Promise<void>;
  /** Suspends the process: timers stand still, also the monotonic clock if it is one that does. */
  suspend(ms: number, options: { monotonicContinues: boolean }): void;
  /** Sets the wall clock forward, or back. */
  setWall(byMs: number): void;
  /** Number of timers that have not fired. */
  readonly timers: number;
};

type Timer = { atMs: number; callback: () => void };

export function createFakeClock(): FakeClock {
  const timers = new Set<Timer>();
  let monotonicMs = 1_000;
  let wallOffsetMs = Date.parse("2026-11-23T00:00:00Z");

  function nextUntil(endMs: number): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of timers) {
      if (timer.atMs <= endMs && (next === undefined || timer.atMs < next.atMs)) next = timer;
    }
    return next;
  }

  function fire(timer: Timer): void {
    timers.delete(timer);
    monotonicMs = Math.max(monotonicMs, timer.atMs);
    timer.callback();
  }

  return {
    monotonicMs: () => monotonicMs,
    wallMs: () => wallOffsetMs + monotonicMs,
    after(delayMs, callback) {
      const timer = { atMs: monotonicMs + delayMs, callback };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    advance(ms) {
      const endMs = monotonicMs + ms;
      for (let timer = nextUntil(endMs); timer !== undefined; timer = nextUntil(endMs)) fire(timer);
      monotonicMs = endMs;
    },
    async run(ms) {
      const endMs = monotonicMs + ms;
      await settled();
      for (let timer = nextUntil(endMs); timer !== undefined; timer = nextUntil(endMs)) {
        fire(timer);
        await settled();
      }
      monotonicMs = endMs;
    },
    suspend(ms, { monotonicContinues }) {
      if (monotonicContinues) monotonicMs += ms;
      else wallOffsetMs += ms;
    },
    setWall(byMs) {
      wallOffsetMs += byMs;
    },
    get timers() {
      return timers.size;
    },
  };
}

/** Resolves when in-process requests have been handled: they take a few turns of the event loop. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 4; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
