import type { KeyDirectory } from "@halyard/api-keys";
import type { SnapshotEntry } from "@halyard/contracts";
import type { EnvironmentViews } from "./environment/environment-views.ts";
import type { EdgeMetrics } from "./metrics.ts";
import type { Pace } from "./snapshot/pace.ts";
import type { SnapshotChange } from "./snapshot/snapshot-holder.ts";
import type { StreamHub } from "./streams/stream-hub.ts";
import type { StreamRounds } from "./streams/stream-rounds.ts";

/**
 * Carries a change of the snapshot to everything that answers: first to the keys, then to the bodies
 * that are polled, and only then to the open streams.
 */
export function createPublisher(parts: {
  directory: KeyDirectory;
  views: EnvironmentViews;
  hub: StreamHub;
  rounds: StreamRounds;
  metrics: EdgeMetrics;
  pace: Pick<Pace, "worked">;
  now: () => number;
  /** Milliseconds that only ever grow. */
  elapsed: () => number;
}): (change: SnapshotChange) => void {
  const { directory, views, hub, rounds, metrics, pace, elapsed } = parts;
  return (change) => {
    const { changed } = change;
    updateKeys(directory, change);
    if (changed.keys.size > 0 || hasDeletedEnvironment(change)) rounds.endWithKeys();
    const beganMs = elapsed();
    const updated = views.update(change);
    pace.worked(elapsed() - beganMs);
    for (const environmentId of updated) hub.announce(environmentId);
    const nowMs = parts.now();
    for (const committedAtMs of oldestCommits(change.taken).values())
      metrics.observePropagation(Math.max(0, nowMs - committedAtMs) / 1_000);
  };
}

function hasDeletedEnvironment({ snapshot, changed }: SnapshotChange): boolean {
  return [...changed.environments].some((id) => snapshot.deletedEnvironments.has(id));
}

function updateKeys(directory: KeyDirectory, { snapshot, changed, whole }: SnapshotChange): void {
  if (whole) {
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

/** When the change that waited longest was committed, for each environment that changed. */
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
