import { pause } from "./pause.ts";

/** Repeated work, which the caller of `startInterval` must stop. */
export type Interval = {
  /** Aborts the signal of the work in progress, and waits until the work has ended. */
  stop(): Promise<void>;
};

type IntervalOptions = {
  /** Maximum pause between the end of one run and the start of the next, in milliseconds. */
  intervalMs: number;
  /** If true, the first run begins immediately; otherwise after a pause. */
  beginsAtOnce?: boolean;
  /** Returns whether the next run may succeed after this error, such as an outage. Other errors end the process. */
  isExpected: (error: unknown) => boolean;
  /** Receives expected errors. `isRepeated` is true if the previous run failed too. */
  onFailure: (error: unknown, isRepeated: boolean) => void;
  /** Returns a number from 0 to 1. */
  random?: () => number;
};

/** Keeps replicas that start together from repeating the same statements at the same times. */
const jitter = 0.1;

/**
 * Repeats work, never concurrently. Each pause is up to a tenth shorter than `intervalMs`. Long work should check the
 * signal between its parts, so that `stop` waits for one part at most.
 */
export function startInterval(
  work: (signal: AbortSignal) => Promise<void>,
  options: IntervalOptions,
): Interval {
  const { intervalMs, isExpected, onFailure, random = Math.random } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const nextTime = () => pause(intervalMs * (1 - jitter * random()), signal);

  let isFailing = false;

  async function runOnce(): Promise<void> {
    try {
      await work(signal);
      isFailing = false;
    } catch (error) {
      if (!isExpected(error)) throw error;
      onFailure(error, isFailing);
      isFailing = true;
    }
  }

  async function run(): Promise<void> {
    if (options.beginsAtOnce) await runOnce();
    while (await nextTime()) await runOnce();
  }

  const running = run();
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
