/**
 * What was started, to be stopped in the reverse order. Something that finishes starting while the
 * stop is already under way is stopped at once, so nothing slips through.
 */
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
        try {
          await release();
        } catch (error) {
          failures.push(error);
        }
      }
      return failures;
    },
  };
}
