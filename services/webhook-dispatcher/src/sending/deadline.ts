/** Ends an attempt after a time, or when its caller calls it off. */
export type Deadline = {
  signal: AbortSignal;
  /** That it was time which ended the attempt. */
  isOver(): boolean;
  /** To be called when the attempt has ended, so that nothing of it stays behind. */
  clear(): void;
};

export function startDeadline(afterMs: number, callOff: AbortSignal | undefined): Deadline {
  const ending = new AbortController();
  let isOver = false;
  const timer = setTimeout(() => {
    isOver = !ending.signal.aborted;
    ending.abort();
  }, afterMs);
  const end = () => ending.abort();
  callOff?.addEventListener("abort", end);
  if (callOff?.aborted) end();
  return {
    signal: ending.signal,
    isOver: () => isOver,
    clear() {
      clearTimeout(timer);
      callOff?.removeEventListener("abort", end);
    },
  };
}
