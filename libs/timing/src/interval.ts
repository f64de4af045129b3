import { pause } from "./pause.ts";

/** Repeated work. It belongs to the caller of `startInterval`, who stops it. */
export type Interval = {
  /** Aborts the signal of the work in progress and waits until that has ended. */
  stop(): Promise<void>;
};

export type IntervalOptions = {
  /** Maximum pause between the end of one run and the start of the next, in milliseconds. */
  intervalMs: number;
  /** True: the first run is at the start. False: after a pause. */
  beginsAtOnce?: boolean;
  /** Returns whether the next run may succeed, as after an outage. Other errors end the process. */
  isExpected: (error: unknown) => boolean;
  /** Receives expected errors. */
  onFailure: (error: unknown) => void;
  /** Returns a number from 0 to 1. */
  random?: () => number;
};

/** Replicas that start together would otherwise repeat the same statements in the same moments. */
const jitter = 0.1;

/**
 * Repeats work, never twice at once. Each pause is up to a tenth shorter than `intervalMs`. Long work checks the
 * signal between its parts, so that `stop` waits for one of them at most.
 */
export function startInterval(
  work: (signal: AbortSignal) => Promise<void>,
  options: IntervalOptions,
): Interval {
  const { intervalMs, isExpected, onFailure, random = Math.random } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const nextTime = () => pause(intervalMs * (1 - jitter * random()), signal);

  async function runOnce(): Promise<void> {
    try {
      await work(signal);
    } catch (error) {
      if (!isExpected(error)) throw error;
      onFailure(error);
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
