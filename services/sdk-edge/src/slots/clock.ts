/** Monotonic time of a process, and its timers. Clocks of two machines are never compared. */
export type Clock = {
  monotonicMs(): number;
  /** Calls `work` later. Returns a function that cancels it. The timer keeps no process alive. */
  after(delayMs: number, work: () => void): () => void;
};

export const processClock: Clock = {
  monotonicMs: () => performance.now(),
  after(delayMs, work) {
    const timer = setTimeout(work, delayMs).unref();
    return () => clearTimeout(timer);
  },
};

export type SlotTimes = typeof slotTimes;

export const slotTimes = {
  /** Interval of checks: counts that changed are written, and failed renewals are sent again. */
  checkIntervalMs: 500,
  /** Interval at which an edge renews its own entry. */
  renewIntervalMs: 2_000,
  /** Time that an acknowledged renewal lasts. It starts when the renewal is sent. */
  countedForMs: 15_000,
  /** Time without a renewal after which the other edges end an edge's entry. Clocks may run at different rates. */
  endAfterMs: 20_000,
  /** Time after which an ended entry is removed from the bucket. */
  forgetAfterMs: 3_600_000,
  /** Time that edges have to publish their counts into a new bucket before any of them admits. */
  publishWithinMs: 5_000,
  /** Maximum time that a request for a stream waits for an answer of NATS. */
  timeoutMs: 5_000,
};
