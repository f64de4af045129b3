import type { Clock } from "./platform.ts";

/** The promises of `ready()`. */
export type Readiness = {
  wait(timeoutMs: number): Promise<boolean>;
  /** Resolves all promises, also later ones. The first call decides. */
  settle(isReady: boolean): void;
  /** Resolves all promises with true after a delay, if nothing does so before. Later calls do not prolong it. */
  settleWithin(delayMs: number): void;
};

export function createReadiness(clock: Clock): Readiness {
  const waiting = new Set<(isReady: boolean) => void>();
  let settled: boolean | undefined;
  let cancelDelayed: (() => void) | undefined;

  function settle(isReady: boolean): void {
    settled ??= isReady;
    cancelDelayed?.();
    for (const finish of [...waiting]) finish(settled);
  }

  return {
    async wait(timeoutMs) {
      if (settled !== undefined) return settled;
      return new Promise((resolve) => {
        const cancel = clock.after(timeoutMs, () => finish(false));
        function finish(isReady: boolean): void {
          cancel();
          waiting.delete(finish);
          resolve(isReady);
        }
        waiting.add(finish);
      });
    },
    settle,
    settleWithin(delayMs) {
      if (settled !== undefined) return;
      cancelDelayed ??= clock.after(delayMs, () => settle(true), { background: true });
    },
  };
}
