/** Reason for the end of a run: a request, too many deaths of one process, or a failed start. */
export type Reason =
  | { kind: "asked"; by: string }
  | { kind: "died"; message: string }
  | { kind: "failed"; error: unknown };

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

/** Ends the run on Ctrl-C, SIGTERM or a closed terminal, and when the launcher has ended. */
export function endWhenAsked(ending: Ending): void {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => ending.settle({ kind: "asked", by: signal }));
  }
  process.once("disconnect", () => ending.settle({ kind: "asked", by: "npm start has ended" }));
  if (!process.connected) ending.settle({ kind: "asked", by: "npm start has ended" });
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
