import { pause } from "./pause.ts";

/** Delays between attempts: `firstMs` after the first failure, doubled after each further one. */
type Backoff = {
  firstMs: number;
  maxMs: number;
  /** Random share of a delay, from 0 to 1; by default 0. It separates the retries of clients that failed together. */
  jitter?: number;
};

/** Returns the delay after a number of consecutive failures. `random` is a number from 0 to 1. */
export function backoffMs(
  { firstMs, maxMs, jitter = 0 }: Backoff,
  failures: number,
  random = Math.random(),
): number {
  return Math.min(firstMs * 2 ** (failures - 1), maxMs) * (1 - jitter * random);
}

type RetryOptions = {
  backoff: Backoff;
  /** Ends the pause between two attempts, but never an attempt. The first attempt is always made. */
  signal?: AbortSignal;
  /** Receives each error and the number of failures so far. It can throw to end the attempts. */
  onFailure: (error: unknown, failures: number) => void;
};

/** Repeats work until it succeeds, and returns its result. Returns undefined if the signal ends the attempts. */
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
