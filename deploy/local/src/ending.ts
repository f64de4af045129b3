import type { ExitStatus, Reaper } from "@halyard/local-backends";

/**
 * Reason for the end of a run: a request, too many deaths of one process, a failed start, or the death
 * of the reaper, without which a killed launcher would leave its servers behind.
 */
export type Reason =
  | { kind: "asked"; by: string }
  | { kind: "died"; message: string }
  | { kind: "failed"; error: unknown }
  | { kind: "unguarded"; status: ExitStatus };

export type Ending = {
  promise: Promise<Reason>;
  /** The first reason counts; what dies afterwards dies because everything is being stopped. */
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

/** How often to look whether npm still waits for us; a kill of npm is noticed that much later. */
const parentPollIntervalMs = 500;

/** Ends the run on Ctrl-C, SIGTERM, a closed terminal, and when npm was killed over our head. */
export function endWhenAsked(ending: Ending, options: { startedByNpm: boolean }): void {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => ending.settle({ kind: "asked", by: signal }));
  }
  if (!options.startedByNpm) return;
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid !== parent) ending.settle({ kind: "asked", by: "the end of npm" });
  }, parentPollIntervalMs);
  timer.unref();
}

/** Ends the run when the reaper ends; when it is closed in the end, the run has had its reason. */
export function endWithReaper(ending: Ending, reaper: Reaper): void {
  void reaper.exited.then((status) => ending.settle({ kind: "unguarded", status }));
}

/** Stops the parts of a run in the reverse order of their start. A part that is added during the stop is stopped at once. */
export type Releasers = {
  add(release: () => Promise<unknown>): Promise<void>;
  /** Runs all, also when one fails, and answers the failures. */
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
