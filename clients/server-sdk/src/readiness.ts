import type { Clock } from "./platform.ts";

/** The promises of `ready()`. */
type Readiness = {
  wait(timeoutMs: number): Promise<boolean>;
  /** Resolves all promises, also later ones. The first call decides. */
  settle(isReady: boolean): void;
};

export function createReadiness(clock: Clock): Readiness {
  const waiting = new Set<(isReady: boolean) => void>();
  let settled: boolean | undefined;
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
    settle(isReady) {
      settled ??= isReady;
      for (const finish of [...waiting]) finish(settled);
    },
  };
}
