import type { KeyDirectory } from "@halyard/api-keys";
import type { SnapshotEntry } from "@halyard/contracts";
import type { EdgeParts } from "./http/edge-parts.ts";
import type { EdgeMetrics } from "./metrics.ts";
import type { DiskCache } from "./snapshot/disk-cache.ts";
import type { Pace, SnapshotUpdate } from "./snapshot/snapshot-holder.ts";

/**
 * Applies each update of the holder's snapshot to everything that depends on it, within one turn of the event loop. The
 * order matters. A key that has ended receives no values of this update. A client that receives an event gets the new
 * values from its next request.
 */
export function applyUpdates(
  parts: EdgeParts,
  options: {
    cache?: Pick<DiskCache, "follow"> | undefined;
    metrics: EdgeMetrics;
    pace: Pick<Pace, "addWork">;
    /** Monotonic clock in milliseconds. */
    monotonicMs: () => number;
  },
): void {
  const { holder, directory, views, configurationTags, openStreams, streams, usage } = parts;
  const { cache, metrics, pace, monotonicMs } = options;
  holder.onUpdate(function applyUpdate(update) {
    const { changed } = update;
    cache?.follow(update);
    usage?.limitsChanged(changed.organizations);
    updateKeys(directory, update);
    if (changed.keys.size > 0 || hasDeletedEnvironment(update))
      streams.upkeep.endStreamsOfEndedKeys();
    // The pace measures only the update of the views, whose cost grows with the number of flags. `notify` writes to the
    // streams without a context in this turn. That cost grows with the number of streams and must not delay changes.
    const beganMs = monotonicMs();
    views.update(update);
    pace.addWork(monotonicMs() - beganMs);
    configurationTags.follow(update);
    for (const environmentId of changed.environments) openStreams.notify(environmentId);
    const nowMs = parts.now();
    for (const committedAtMs of oldestCommits(update.taken).values())
      metrics.observePropagation(Math.max(0, nowMs - committedAtMs) / 1_000);
    for (const environmentId of changed.environments) parts.waiting.changed(environmentId);
  });
}

function hasDeletedEnvironment({ snapshot, changed }: SnapshotUpdate): boolean {
  return [...changed.environments].some((id) => snapshot.deletedEnvironments.has(id));
}

function updateKeys(
  directory: KeyDirectory,
  { snapshot, changed, isReplacement }: SnapshotUpdate,
): void {
  if (isReplacement) {
    directory.replace(snapshot.keys, snapshot.deletedEnvironments.keys());
    return;
  }
  for (const environmentId of changed.environments)
    if (snapshot.deletedEnvironments.has(environmentId)) directory.endEnvironment(environmentId);
  for (const keyId of changed.keys) {
    const entry = snapshot.keys.get(keyId);
    if (entry !== undefined) directory.put(keyId, entry);
  }
}

/** Returns the commit time of the oldest change in each environment whose flags changed. */
function oldestCommits(taken: readonly SnapshotEntry[]): ReadonlyMap<string, number> {
  const oldest = new Map<string, number>();
  for (const { address, value } of taken) {
    if (address.kind !== "flag") continue;
    const committedAtMs = Date.parse(value.committed_at);
    const known = oldest.get(address.environmentId) ?? committedAtMs;
    oldest.set(address.environmentId, Math.min(known, committedAtMs));
  }
  return oldest;
}
