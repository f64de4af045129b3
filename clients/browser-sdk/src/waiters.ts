import type { Clock } from "./clock.ts";

/** Callers that wait for current values. */
type Waiters = {
  /** Resolves with the value that `settle` receives, or with false after the time. */
  wait(timeoutMs: number): Promise<boolean>;
  settle(value: boolean): void;
};

export function createWaiters(clock: Clock): Waiters {
  const waiting = new Set<(value: boolean) => void>();
  return {
    wait: (timeoutMs) =>
      new Promise((resolve) => {
        const end = (value: boolean) => {
          cancel();
          waiting.delete(end);
          resolve(value);
        };
        const cancel = clock.after(timeoutMs, () => end(false));
        waiting.add(end);
      }),
    settle(value) {
      for (const end of [...waiting]) end(value);
    },
  };
}
