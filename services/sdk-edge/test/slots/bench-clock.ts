import type { Clock } from "../../src/slots/clock.ts";

/**
 * A clock for an edge that uses a real NATS server. It runs in real time, so that retries work. A test can make it leap
 * instead of waiting. A test can also stop it, so that no timer fires, no matter how slow the machine is.
 */
export type BenchClock = Clock & {
  leap(ms: number): void;
  stop(): void;
  /** Restarts the clock after it was stopped. */
  run(): void;
};

type Planned = { dueMs: number; work: () => void };

export function createBenchClock(): BenchClock {
  const planned = new Set<Planned>();
  let leaptMs = 0;
  /** Time at which the clock was stopped; undefined while it runs. */
  let stoppedAtMs: number | undefined;
  let timer: NodeJS.Timeout | undefined;

  const monotonicMs = () => (stoppedAtMs ?? performance.now()) + leaptMs;

  /** Runs all due work in the order of time. Work that is planned meanwhile runs later. */
  function runDueWork(): void {
    const due = [...planned].filter(({ dueMs }) => dueMs <= monotonicMs());
    for (const one of due.sort((left, right) => left.dueMs - right.dueMs))
      if (planned.delete(one)) one.work();
    setTimer();
  }

  function setTimer(): void {
    clearTimeout(timer);
    if (stoppedAtMs !== undefined || planned.size === 0) return;
    const nextMs = Math.min(...[...planned].map(({ dueMs }) => dueMs));
    timer = setTimeout(runDueWork, Math.max(0, Math.ceil(nextMs - monotonicMs()))).unref();
  }

  return {
    monotonicMs,
    after(delayMs, work) {
      const one = { dueMs: monotonicMs() + delayMs, work };
      planned.add(one);
      setTimer();
      return () => void planned.delete(one);
    },
    leap(ms) {
      leaptMs += ms;
      runDueWork();
    },
    stop() {
      stoppedAtMs ??= performance.now();
      setTimer();
    },
    run() {
      if (stoppedAtMs !== undefined) leaptMs -= performance.now() - stoppedAtMs;
      stoppedAtMs = undefined;
      setTimer();
    },
  };
}
