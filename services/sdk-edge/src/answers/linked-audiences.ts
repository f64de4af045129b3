import type { AudienceEntry } from "@halyard/contracts";
import {
  type CompiledAudience,
  compileAudience,
  fingerprintBytes,
  type Need,
  needsOfAudience,
} from "@halyard/evaluation";
import {
  existingChunk,
  isDeleted,
  isKnownAudience,
  type Snapshot,
  type TakenEntry,
} from "../snapshot/snapshot.ts";
import type { SnapshotUpdate } from "../snapshot/snapshot-holder.ts";
import { weightOfConditions } from "./condition-weight.ts";

/** An audience that is ready to be evaluated, with all chunks of its list. All flags of a project share it. */
export type LinkedAudience = {
  readonly entry: AudienceEntry;
  readonly chunks: readonly Buffer[];
  readonly compiled: CompiledAudience;
  readonly needs: readonly Need[];
  /** Cost of evaluating it, in conditions. */
  readonly weight: number;
};

/** The audiences of all projects. They are compiled when the first flag refers to them. */
export type LinkedAudiences = {
  /** Returns an audience; undefined while it, or a chunk of its list, is missing. */
  find(projectId: string, key: string): LinkedAudience | undefined;
  /** Applies an update of the snapshot. Returns the keys of the changed audiences by project. */
  update(update: SnapshotUpdate): ReadonlyMap<string, ReadonlySet<string>>;
};

export function createLinkedAudiences(): LinkedAudiences {
  let snapshot: Snapshot | undefined;
  /** The audiences of projects by key. Dropped when one of them changes. */
  const byKey = new Map<string, ReadonlyMap<string, AudienceEntry>>();
  /** A complete audience stays complete: its entry and the chunks that it names never change. */
  const complete = new WeakMap<AudienceEntry, LinkedAudience>();

  return {
    find(projectId, key) {
      if (snapshot === undefined) return undefined;
      let entries = byKey.get(projectId);
      if (entries === undefined) {
        entries = entriesByKey(snapshot, projectId);
        byKey.set(projectId, entries);
      }
      const entry = entries.get(key);
      if (entry === undefined) return undefined;
      const linked = complete.get(entry) ?? link(snapshot, entry);
      if (linked !== undefined) complete.set(entry, linked);
      return linked;
    },
    update(update) {
      if (update.isReplacement) byKey.clear();
      ({ snapshot } = update);
      const changed = changedKeys(update);
      for (const projectId of changed.keys()) byKey.delete(projectId);
      return changed;
    },
  };
}

/**
 * Returns the known audiences of a project by key. If an audience is deleted and created again, the new one may arrive
 * before the deletion of the old one. Ids increase with time, so the greatest id wins.
 */
function entriesByKey(snapshot: Snapshot, projectId: string): ReadonlyMap<string, AudienceEntry> {
  const entries = new Map<string, AudienceEntry>();
  for (const id of snapshot.audienceIds.get(projectId) ?? []) {
    const entry = snapshot.audiences.get(id);
    if (entry === undefined || isDeleted(entry) || !isKnownAudience(entry)) continue;
    const other = entries.get(entry.key);
    if (other === undefined || other.audience_id < entry.audience_id) entries.set(entry.key, entry);
  }
  return entries;
}

/** Cost of the search in a list, in conditions. */
const listWeight = 2;

function link(snapshot: Snapshot, entry: AudienceEntry): LinkedAudience | undefined {
  const chunks: Buffer[] = [];
  for (const sha256 of entry.list?.chunks ?? []) {
    const bytes = existingChunk(snapshot, entry.audience_id, sha256)?.bytes;
    // A damaged chunk counts as missing, because the search in it would fail.
    if (bytes === undefined || bytes.length % fingerprintBytes !== 0) return undefined;
    chunks.push(bytes);
  }
  if (chunks.length > 0 && !Number.isInteger(Math.log2(chunks.length))) return undefined;
  const weight = entry.match.reduce(
    (sum, conditions) => sum + weightOfConditions(conditions),
    entry.list === undefined ? 0 : listWeight,
  );
  return {
    ...{ entry, chunks, weight },
    compiled: compileAudience(entry, chunks),
    needs: needsOfAudience(entry),
  };
}

const noKeys: ReadonlyMap<string, ReadonlySet<string>> = new Map();

function changedKeys({ snapshot, changed, taken }: SnapshotUpdate) {
  if (changed.audiences.size === 0) return noKeys;
  const keys = new Map<string, Set<string>>();
  const add = (entry: TakenEntry["before"]) => {
    if (entry === undefined || isDeleted(entry) || entry.kind !== "audience") return;
    keys.set(entry.project_id, (keys.get(entry.project_id) ?? new Set()).add(entry.key));
  };
  for (const id of changed.audiences) add(snapshot.audiences.get(id));
  for (const { before } of taken) add(before);
  return keys;
}
