import { type CacheBinding, writeCacheFile } from "./cache-file.ts";
import { HalyardError } from "./halyard-error.ts";
import type { Platform } from "./platform.ts";
import type { RuleSet } from "./rules/rule-set.ts";

export type CacheWriter = {
  /** Schedules a write, if the flags in memory are not those of the file. */
  schedule(): void;
  /** Writes what is scheduled, and stops. */
  close(): Promise<void>;
};

/** Delay of a write after a change. A series of changes causes few writes. */
const writeDelayMs = 1_000;
/** Minimum pause after a write, as a multiple of its duration, so that writing takes 2 % of the time at most. */
const pausePerWrite = 50;
/** Delay after a failed write. A full or broken disk does not recover within seconds. */
const delayAfterFailureMs = 60_000;

export const noCacheWriter: CacheWriter = {
  schedule: () => undefined,
  close: async () => undefined,
};

/** Writes the flags to the cache file after changes, one write at a time. A failure is reported and retried. */
export function createCacheWriter(options: {
  path: string;
  binding: CacheBinding;
  ruleSet: RuleSet;
  clock: Platform["clock"];
  onError: (error: HalyardError) => void;
}): CacheWriter {
  const { path, binding, ruleSet, clock, onError } = options;
  let cancel: (() => void) | undefined;
  let writing: Promise<void> | undefined;
  let isDirty = false;
  let closed = false;
  let writtenRevision = ruleSet.revision;

  function writeIn(delayMs: number): void {
    if (closed || cancel !== undefined) return;
    cancel = clock.after(delayMs, () => void write(), { background: true });
  }

  async function write(): Promise<void> {
    writing = writeNow();
    await writing;
    writing = undefined;
  }

  /** Never rejects. */
  async function writeNow(): Promise<void> {
    const startedAtMs = clock.monotonicMs();
    let failed = false;
    isDirty = false;
    try {
      await writeRules();
    } catch (error) {
      failed = true;
      isDirty = true;
      const { code = "unknown error" } = error as NodeJS.ErrnoException;
      onError(new HalyardError("cache_file", `The cache file cannot be written (${code}).`));
    }
    cancel = undefined;
    const pauseMs = pausePerWrite * (clock.monotonicMs() - startedAtMs);
    if (isDirty) writeIn(failed ? delayAfterFailureMs : Math.max(writeDelayMs, pauseMs));
  }

  async function writeRules(): Promise<void> {
    const { etag, received: rules, revision, isWaiting } = ruleSet;
    // The file keeps the last complete state. The chunks that complete the next one schedule another write.
    if (isWaiting) return;
    // Without a tag, the next start could not tell the service which flags it has.
    if (etag !== undefined && rules !== undefined) {
      const chunks = new Map(ruleSet.lists.chunks);
      const savedAt = new Date(clock.wallMs());
      await writeCacheFile(path, binding, { rules, chunks, etag, savedAt });
    }
    writtenRevision = revision;
  }

  return {
    schedule() {
      if (ruleSet.revision === writtenRevision) return;
      isDirty = true;
      if (writing === undefined) writeIn(writeDelayMs);
    },
    async close() {
      closed = true;
      cancel?.();
      await writing;
      if (isDirty) await writeNow();
    },
  };
}
