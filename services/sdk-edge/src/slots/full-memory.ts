import type { Clock } from "./clock.ts";

/** That within a limit nothing was free a moment ago. */
export type FullMemory = {
  note(limit: number): void;
  isFull(limit: number): boolean;
  clear(): void;
};

export function createFullMemory(clock: Clock, forMs: number): FullMemory {
  let seen = { limit: 0, untilMs: Number.NEGATIVE_INFINITY };
  return {
    note: (limit) => {
      seen = { limit, untilMs: clock.elapsed() + forMs };
    },
    isFull: (limit) => limit <= seen.limit && clock.elapsed() < seen.untilMs,
    clear: () => {
      seen = { limit: 0, untilMs: Number.NEGATIVE_INFINITY };
    },
  };
}
