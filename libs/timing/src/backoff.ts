import { pause } from "./pause.ts";

/** Delays between attempts: `firstMs` after the first failure, twice as long after each further one. */
export type Backoff = {
  firstMs: number;
  maxMs: number;
  /** Share of a delay that is random, from 0 to 1; by default none. It separates clients that failed together. */
  jitter?: number;
};

/** Returns the delay after a number of failures in a row. `random` is from 0 to 1. */
export function backoffMs(
  { firstMs, maxMs, jitter = 0 }: Backoff,
  failures: number,
  random = Math.random(),
): number {
  return Math.min(firstMs * 2 ** (failures - 1), maxMs) * (1 - jitter * random);
}

export type RetryOptions = {
  backoff: Backoff;
  /** Ends the pause between two attempts, never an attempt. The first attempt is always made. */
  signal?: AbortSignal;
  /** Receives each error with the number of failures so far. It throws to end the attempts. */
  onFailure: (error: unknown, failures: number) => void;
};

/** Repeats work until it succeeds, and returns its result. Returns undefined when the signal ended the attempts. */
export function retry<T>(
  work: () => Promise<T>,
  options: RetryOptions & { signal?: never },
): Promise<T>;
export function retry<T>(work: () => Promise<T>, options: RetryOptions): Promise<T | undefined>;
export async function retry<T>(
  work: () => Promise<T>,
  { backoff, signal, onFailure }: RetryOptions,
): Promise<T | undefined> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await work();
    } catch (error) {
      onFailure(error, failures);
      if (!(await pause(backoffMs(backoff, failures), signal))) return undefined;
    }
  }
}
