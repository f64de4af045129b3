import type { Clock } from "./clock.ts";

/** That something is to be told after a while, however often it changes until then. */
export type Reminder = {
  /** From now on the while passes, unless it does so already. */
  plan(): void;
  /** It is time now. */
  make(): void;
  readonly isPlanned: boolean;
  readonly isDue: boolean;
  clear(): void;
};

export function createReminder(options: {
  clock: Clock;
  delayMs: () => number;
  onDue: () => void;
}): Reminder {
  let isPlanned = false;
  let isDue = false;
  return {
    plan() {
      if (isPlanned) return;
      isPlanned = true;
      options.clock.after(options.delayMs(), () => {
        isPlanned = false;
        isDue = true;
        options.onDue();
      });
    },
    make: () => {
      isDue = true;
    },
    get isPlanned() {
      return isPlanned;
    },
    get isDue() {
      return isDue;
    },
    clear: () => {
      isDue = false;
    },
  };
}
