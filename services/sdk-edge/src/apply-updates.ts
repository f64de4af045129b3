import type { KeyDirectory } from "@halyard/api-keys";
import type { SnapshotEntry } from "@halyard/contracts";
import type { ConfigurationTags } from "./environment/configuration-tags.ts";
import type { EnvironmentViews } from "./environment/environment-views.ts";
import type { WaitingRequests } from "./environment/waiting-requests.ts";
import type { EdgeMetrics } from "./metrics.ts";
import type { Ofrep } from "./ofrep/ofrep.ts";
import type { RulesetEndpoints } from "./ruleset/ruleset-endpoints.ts";
import type { DiskCache } from "./snapshot/disk-cache.ts";
import type { Pace } from "./snapshot/pace.ts";
import type { SnapshotHolder, SnapshotUpdate } from "./snapshot/snapshot-holder.ts";
import type { StreamHub } from "./streams/stream-hub.ts";
import type { StreamUpkeep } from "./streams/stream-upkeep.ts";
import type { Usage } from "./usage/usage.ts";

/**
 * Applies each update of the holder's snapshot to everything that depends on it, within one turn of the event loop. The
 * order matters. A key that has ended receives no values of this update. A client that receives an event gets the new
 * values from its next request.
 */
export function applyUpdates(parts: {
  holder: Pick<SnapshotHolder, "onUpdate">;
  directory: KeyDirectory;
  views: EnvironmentViews;
  configurationTags: Pick<ConfigurationTags, "follow">;
  waiting: Pick<WaitingRequests, "changed">;
  hub: StreamHub;
  upkeep: StreamUpkeep;
  rulesets: Pick<RulesetEndpoints, "notify">;
  ofrep: Pick<Ofrep, "notify">;
  cache?: Pick<DiskCache, "follow"> | undefined;
  usage?: Pick<Usage, "limitsChanged"> | undefined;
  metrics: EdgeMetrics;
  pace: Pick<Pace, "addWork">;
  now: () => number;
  /** Monotonic clock in milliseconds. */
  monotonicMs: () => number;
}): void {
  const { directory, views, hub, upkeep, cache, usage, metrics, pace, monotonicMs } = parts;
  parts.holder.onUpdate(function applyUpdate(update) {
    const { changed } = update;
    cache?.follow(update);
    usage?.limitsChanged(changed.organizations);
    updateKeys(directory, update);
    if (changed.keys.size > 0 || hasDeletedEnvironment(update)) upkeep.endStreamsOfEndedKeys();
    // The pace measures only the update of the views, whose cost grows with the number of flags. `notify` also writes
    // to the streams without a context in this turn. That cost grows with the number of streams and must not delay
    // changes.
    const beganMs = monotonicMs();
    const updated = views.update(update);
    pace.addWork(monotonicMs() - beganMs);
    parts.configurationTags.follow(update);
    for (const environmentId of updated) {
      hub.notify(environmentId);
      parts.rulesets.notify(environmentId);
    }
    const nowMs = parts.now();
    for (const committedAtMs of oldestCommits(update.taken).values())
      metrics.observePropagation(Math.max(0, nowMs - committedAtMs) / 1_000);
    for (const environmentId of changed.environments) {
      parts.waiting.changed(environmentId);
      parts.ofrep.notify(environmentId);
    }
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
