import type { Clock } from "../../src/slots/clock.ts";

/**
 * Time for an edge that asks a real NATS server. It runs as it does for everybody, for what is retried
 * after a rest; a test can have it leap, so that nothing is waited for, and can stop it, so that nothing
 * ends by itself, however long a busy machine takes in between.
 */
export type BenchClock = Clock & {
  leap(ms: number): void;
  stop(): void;
  /** Runs on after it was stopped. */
  run(): void;
};

type Planned = { dueMs: number; work: () => void };

export function createBenchClock(): BenchClock {
  const planned = new Set<Planned>();
  let leaptMs = 0;
  /** When it was stopped; undefined while it runs. */
  let stoodMs: number | undefined;
  let alarm: NodeJS.Timeout | undefined;

  const monotonicMs = () => (stoodMs ?? performance.now()) + leaptMs;

  /** In the order of their times. What is planned meanwhile has its turn later. */
  function doWhatIsDue(): void {
    const due = [...planned].filter(({ dueMs }) => dueMs <= monotonicMs());
    for (const one of due.sort((left, right) => left.dueMs - right.dueMs))
      if (planned.delete(one)) one.work();
    setAlarm();
  }

  function setAlarm(): void {
    clearTimeout(alarm);
    if (stoodMs !== undefined || planned.size === 0) return;
    const nextMs = Math.min(...[...planned].map(({ dueMs }) => dueMs));
    alarm = setTimeout(doWhatIsDue, Math.max(0, Math.ceil(nextMs - monotonicMs()))).unref();
  }

  return {
    monotonicMs,
    after(delayMs, work) {
      const one = { dueMs: monotonicMs() + delayMs, work };
      planned.add(one);
      setAlarm();
      return () => void planned.delete(one);
    },
    leap(ms) {
      leaptMs += ms;
      doWhatIsDue();
    },
    stop() {
      stoodMs ??= performance.now();
      setAlarm();
    },
    run() {
      if (stoodMs !== undefined) leaptMs -= performance.now() - stoodMs;
      stoodMs = undefined;
      setAlarm();
    },
  };
}
