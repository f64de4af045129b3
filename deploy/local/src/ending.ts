import type { ExitStatus, Reaper } from "@halyard/local-backends";

/**
 * Reason for the end of a run: a request, too many deaths of one process, a failed start, or the death of the reaper.
 * Without the reaper, a killed launcher would leave its servers running.
 */
export type Reason =
  | { kind: "asked"; by: string }
  | { kind: "died"; message: string }
  | { kind: "failed"; error: unknown }
  | { kind: "unguarded"; status: ExitStatus };

export type Ending = {
  promise: Promise<Reason>;
  /** Only the first reason counts. Later deaths are a consequence of the stop. */
  settle(reason: Reason): void;
  hasSettled(): boolean;
};

export function createEnding(): Ending {
  const { promise, resolve } = Promise.withResolvers<Reason>();
  let settled = false;
  return {
    promise,
    settle(reason) {
      settled = true;
      resolve(reason);
    },
    hasSettled: () => settled,
  };
}

/** Interval of the check whether npm still runs. */
const parentPollIntervalMs = 500;

/** Ends the run on Ctrl-C, SIGTERM or a closed terminal, and when npm was killed without a signal to this process. */
export function endWhenAsked(ending: Ending, options: { startedByNpm: boolean }): void {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => ending.settle({ kind: "asked", by: signal }));
  }
  if (!options.startedByNpm) return;
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid !== parent) ending.settle({ kind: "asked", by: "npm has ended" });
  }, parentPollIntervalMs);
  timer.unref();
}

/**
 * Ends the run when the reaper ends. Closing the reaper at the end of a run has no effect, because the reason is
 * settled.
 */
export function endWithReaper(ending: Ending, reaper: Reaper): void {
  void reaper.exited.then((status) => ending.settle({ kind: "unguarded", status }));
}

/**
 * Stops the parts of a run in the reverse order of their start. A part added after the stop began is stopped
 * immediately.
 */
export type Releasers = {
  add(release: () => Promise<unknown>): Promise<void>;
  /** Runs all releases, even if some fail, and returns the failures. */
  releaseAll(): Promise<unknown[]>;
};

export function createReleasers(): Releasers {
  const releases: (() => Promise<unknown>)[] = [];
  let closed = false;
  return {
    async add(release) {
      if (closed) await release();
      else releases.push(release);
    },
    async releaseAll() {
      closed = true;
      const failures: unknown[] = [];
      for (const release of releases.splice(0).reverse()) {
        await release().catch((error) => failures.push(error));
      }
      return failures;
    },
  };
}
