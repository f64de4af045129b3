/**
 * Work that may take long, done a slice at a time, so that everybody else is answered in between. Those
 * who wait take turns: two of them take twice as long, and the others wait no longer than before.
 */
export type PatientWork = {
  /** Begins some work at once. Answers false, and does nothing, when too much is waiting. */
  begin(work: Generator<undefined, void>, isWanted: () => boolean): boolean;
  stop(): void;
};

/** About what an ordinary burst of requests takes. */
export const sliceMs = 10;

/** Each holds a context of up to 64 KiB. */
export const mostWaiting = 500;

export function createPatientWork(options: {
  /** Milliseconds that only ever grow. */
  elapsed: () => number;
  mostWaiting?: number;
}): PatientWork {
  const { elapsed } = options;
  const most = options.mostWaiting ?? mostWaiting;
  type Waiting = { work: Generator<undefined, void>; isWanted: () => boolean };
  const queue: Waiting[] = [];
  let next: NodeJS.Immediate | undefined;

  function goOn({ work }: Waiting): boolean {
    const untilMs = elapsed() + sliceMs;
    while (elapsed() < untilMs) if (work.next().done === true) return true;
    return false;
  }

  function serveSlice(): void {
    next = undefined;
    const first = queue.shift();
    if (first === undefined) return;
    if (first.isWanted() && !goOn(first)) queue.push(first);
    if (queue.length > 0) next = setImmediate(serveSlice);
  }

  return {
    begin(work, isWanted) {
      if (queue.length >= most) return false;
      queue.push({ work, isWanted });
      next ??= setImmediate(serveSlice);
      return true;
    },
    stop: () => clearImmediate(next),
  };
}
