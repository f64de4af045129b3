/** Time and chance, which tests control. */
export type Clock = {
  /** Milliseconds since a fixed time. */
  now(): number;
  /** A number from 0 to 1. */
  random(): number;
  /** Calls back once after a time in milliseconds. The returned function cancels that. */
  after(ms: number, callback: () => void): () => void;
};

export const systemClock: Clock = {
  now: () => Date.now(),
  random: () => Math.random(),
  after(ms, callback) {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
};
