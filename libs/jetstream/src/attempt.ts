import { backoffMs, pause } from "@halyard/timing";

/**
 * Tries a piece of work again until it succeeds. What is away comes back, so an outage is waited for
 * as long as it lasts; work that fails by its own fault fails the next time too, mostly, so after a
 * few times it has failed for good.
 */
export type Attempted<T> =
  | { outcome: "succeeded"; result: T }
  | { outcome: "failed"; error: unknown }
  /** The work was not to be gone on with; whether its last attempt had an effect is not known. */
  | { outcome: "called off" };

export type Failure = {
  error: unknown;
  cause: "outage" | "fault";
  /** Outages without anything else in between, or all faults. */
  count: number;
};

/** A fault that is none of the message's (a lost race, a deadlock) does not strike five times in a row. */
export const triesPerMessage = 5;

/** Its maximum is the time after which the end of an outage is noticed. */
const backoff = { firstMs: 50, mostMs: 5_000 };

export async function attempt<T>(
  work: () => Promise<T>,
  options: {
    isOutage(error: unknown): boolean;
    onFailure(failure: Failure): void;
    /** Aborted, it ends the waiting between two attempts, never an attempt. */
    calledOff: AbortSignal;
  },
): Promise<Attempted<T>> {
  let faults = 0;
  let outages = 0;
  for (;;) {
    try {
      return { outcome: "succeeded", result: await work() };
    } catch (error) {
      const cause = options.isOutage(error) ? "outage" : "fault";
      if (cause === "fault") faults += 1;
      outages = cause === "outage" ? outages + 1 : 0;
      const count = cause === "outage" ? outages : faults;
      options.onFailure({ error, cause, count });
      if (faults === triesPerMessage) return { outcome: "failed", error };
      if (!(await pause(backoffMs(backoff, count), options.calledOff)))
        return { outcome: "called off" };
    }
  }
}
