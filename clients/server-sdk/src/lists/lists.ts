import { ChunkLoader, type ChunkLoaderOptions } from "./chunk-loader.ts";
import { createWaitLimit } from "./wait-limit.ts";

/** Keeps the lists of audiences complete: loads their chunks, and ends the wait of flags for them. */
type Lists = {
  /** Call this after each change of the rule set. `changed` are the keys of flags that changed. */
  update(changed: readonly string[]): void;
  /** Stops the requests. Flags that wait still count as not found in time. */
  stopRequests(): void;
  stop(): void;
};

export function openLists(options: ChunkLoaderOptions): Lists {
  const { ruleSet, platform, onChange } = options;
  const limit = createWaitLimit({ ruleSet, clock: platform.clock, onChange });
  const loader = new ChunkLoader({
    ...options,
    onChange(keys) {
      limit.update(keys);
      onChange(keys);
    },
  });
  let revision: number | undefined;
  return {
    update(changed) {
      // Heartbeats confirm the same rules all the time.
      if (revision === ruleSet.revision) return;
      revision = ruleSet.revision;
      limit.update(changed);
      loader.update();
    },
    stopRequests: () => loader.stop(),
    stop() {
      limit.stop();
      loader.stop();
    },
  };
}
