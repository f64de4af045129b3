import type { Refusal } from "@halyard/service";
import type { Clock } from "./clock.ts";

/** Who waits to hear whether there is a slot, in the order in which they came; none for too long. */
export type WaitingTakers = {
  add(decided: Decided): void;
  /** For all who wait now the others are being asked. */
  noteAsked(): void;
  /** Takes out who has waited longest. */
  next(): Decided | undefined;
  /** Refuses those for whom the others were asked; answers how many. */
  refuseAsked(refusal: Refusal): number;
  readonly size: number;
};

export type Decided = (refusal: Refusal | undefined) => void;

type Waiter = { decided: Decided; untilMs: number; isAsked: boolean };

export function createWaitingTakers(options: {
  clock: Clock;
  patienceMs: number;
  /** Called for each who has waited for too long. */
  onImpatient: (decided: Decided) => void;
}): WaitingTakers {
  const { clock, patienceMs } = options;
  let waiters: Waiter[] = [];
  let isWatched = false;

  function watch(): void {
    const [first] = waiters;
    isWatched = first !== undefined;
    if (first !== undefined) clock.after(first.untilMs - clock.elapsed(), endPatience);
  }

  function endPatience(): void {
    const nowMs = clock.elapsed();
    const impatient = waiters.filter(({ untilMs }) => untilMs <= nowMs);
    waiters = waiters.slice(impatient.length);
    for (const { decided } of impatient) options.onImpatient(decided);
    watch();
  }

  return {
    add(decided) {
      waiters.push({ decided, untilMs: clock.elapsed() + patienceMs, isAsked: false });
      if (!isWatched) watch();
    },
    noteAsked() {
      for (const waiter of waiters) waiter.isAsked = true;
    },
    next: () => waiters.shift()?.decided,
    refuseAsked(refusal) {
      const asked = waiters.filter(({ isAsked }) => isAsked);
      waiters = waiters.filter(({ isAsked }) => !isAsked);
      for (const { decided } of asked) decided(refusal);
      return asked.length;
    },
    get size() {
      return waiters.length;
    },
  };
}
