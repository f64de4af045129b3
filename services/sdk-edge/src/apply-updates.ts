import type { KeyDirectory } from "@halyard/api-keys";
import type { SnapshotEntry } from "@halyard/contracts";
import type { ViewChange } from "./answers/environment-views.ts";
import type { EdgeParts } from "./http/edge-parts.ts";
import type { EdgeMetrics } from "./metrics.ts";
import type { DiskCache } from "./snapshot/disk-cache.ts";
import { damagedChunks } from "./snapshot/snapshot.ts";
import type { Pace, SnapshotUpdate, TracedEntry } from "./snapshot/snapshot-holder.ts";
import { traceBroadcast } from "./streams/trace-broadcast.ts";

/**
 * Applies each update of the holder's snapshot to everything that depends on it, within one turn of the event loop. The
 * order matters. A key that has ended receives no values of this update. A client that receives an event gets the new
 * values from its next request.
 *
 * Flags that wait for an audience are given up by one timer for all of them. Returns a function that stops it.
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
): () => void {
  const { holder, directory, views, configurationTags, openStreams, streams, usage } = parts;
  const { cache, metrics, pace, monotonicMs } = options;
  let givingUp: NodeJS.Timeout | undefined;

  function planGivingUp(): void {
    clearTimeout(givingUp);
    const { waitsUntilMs } = views;
    if (waitsUntilMs === undefined) return;
    // Timers can fire a fraction of a millisecond early.
    const delayMs = Math.max(0, Math.ceil(waitsUntilMs - monotonicMs()));
    givingUp = setTimeout(giveUp, delayMs).unref();
  }

  function giveUp(): void {
    const changes = views.giveUp();
    configurationTags.viewsChanged(changes);
    for (const environmentId of idsOf(changes)) openStreams.notify(environmentId);
    for (const environmentId of idsOf(changes)) parts.waiting.changed(environmentId);
    planGivingUp();
  }

  holder.onUpdate(function applyUpdate(update) {
    const { changed } = update;
    cache?.follow(update);
    usage?.limitsChanged(changed.organizations);
    parts.replacedChunks.follow(update.removedChunks ?? []);
    updateKeys(directory, update);
    if (changed.keys.size > 0 || hasDeletedEnvironment(update))
      streams.upkeep.endStreamsOfEndedKeys();
    // The pace measures only the update of the views, whose cost grows with the number of flags. `notify` writes to the
    // streams without a context in this turn. That cost grows with the number of streams and must not delay changes.
    const beganMs = monotonicMs();
    const viewChanges = views.update(update);
    pace.addWork(monotonicMs() - beganMs);
    configurationTags.follow(update, viewChanges);
    const environmentIds = new Set([...changed.environments, ...idsOf(viewChanges)]);
    const { traced = [] } = update;
    for (const environmentId of environmentIds)
      traceBroadcast(environmentId, traced, () => openStreams.notify(environmentId));
    const nowMs = parts.now();
    for (const [id, committedAtMs] of oldestCommits(update.taken)) {
      const seconds = Math.max(0, nowMs - committedAtMs) / 1_000;
      metrics.observePropagation(seconds, traceOfCommit(traced, { id, committedAtMs }));
    }
    for (const environmentId of environmentIds) parts.waiting.changed(environmentId);
    planGivingUp();
    logDamagedChunks(update, parts);
  });
  return () => clearTimeout(givingUp);
}

function logDamagedChunks({ snapshot, changed }: SnapshotUpdate, { logger }: EdgeParts): void {
  for (const audienceId of changed.audiences)
    for (const { sha256 } of damagedChunks(snapshot, audienceId))
      logger.error({ audience_id: audienceId, sha256 }, "a chunk of a list is damaged");
}

const idsOf = (changes: readonly ViewChange[]) => changes.map(({ environmentId }) => environmentId);

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

/** Returns the commit time of the oldest change in each environment, and of the oldest of each audience. */
function oldestCommits(taken: readonly SnapshotEntry[]): ReadonlyMap<string, number> {
  const oldest = new Map<string, number>();
  for (const { address, value } of taken) {
    const id = changedId(address);
    if (id === undefined) continue;
    const committedAtMs = Date.parse(value.committed_at);
    oldest.set(id, Math.min(oldest.get(id) ?? committedAtMs, committedAtMs));
  }
  return oldest;
}

/** Returns the id of the environment or audience that an entry changes. */
function changedId(address: SnapshotEntry["address"]): string | undefined {
  if (address.kind === "flag") return address.environmentId;
  return address.kind === "audience" ? address.audienceId : undefined;
}

/** Returns the trace of a commit, if it is sent to a collector. */
function traceOfCommit(
  traced: readonly TracedEntry[],
  { id, committedAtMs }: { id: string; committedAtMs: number },
): string | undefined {
  return traced.find(
    ({ entry: { address, value }, span }) =>
      changedId(address) === id &&
      Date.parse(value.committed_at) === committedAtMs &&
      span.context.traceparent.endsWith(sampledFlags),
  )?.span.traceId;
}

const sampledFlags = "-01";
