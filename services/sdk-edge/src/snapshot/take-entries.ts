import {
  type EntryOf,
  type FlagEntry,
  isEntryOf,
  type KeyEntry,
  type LiveEntry,
  type SnapshotEntry,
  type Tombstone,
} from "@halyard/contracts";
import { NewestWins } from "./newest-wins.ts";
import {
  type DeletedKey,
  type EnvironmentFlags,
  emptySnapshot,
  entryAt,
  isDeleted,
  type Snapshot,
} from "./snapshot.ts";

/** An applied entry and the entry that it replaced. `before` is undefined for a new one. */
export type TakenEntry = SnapshotEntry & { before: LiveEntry | Tombstone | undefined };

/**
 * Puts entries into a snapshot, which changes in place. Returns the ids of the changes, and the entries that were new
 * or replaced an older version, in the order of arrival. Versions decide, not arrival: a late or repeated entry changes
 * nothing, and an older version of a deleted flag does not restore it. The same entries in any order result in the same
 * snapshot. The cost depends on the entries alone.
 */
export function takeEntries(
  snapshot: Snapshot,
  entries: Iterable<SnapshotEntry>,
): { changed: ChangedIds; taken: readonly TakenEntry[] } {
  const environments = new Set<string>();
  const keys = new Set<string>();
  const organizations = new Set<string>();
  const taken: TakenEntry[] = [];

  for (const entry of entries) {
    const { address } = entry;
    const before = entryAt(snapshot, address)?.value;
    if (!put(snapshot, entry)) continue;
    taken.push({ ...entry, before });
    if (address.kind === "flag" || address.kind === "environment")
      environments.add(address.environmentId);
    else if (address.kind === "key") keys.add(address.keyId);
    else organizations.add(address.organizationId);
  }
  return { changed: { environments, keys, organizations }, taken };
}

/** Builds a snapshot from the entries of a full read. */
export function buildSnapshot(epoch: string, entries: Iterable<SnapshotEntry>): Snapshot {
  const snapshot = emptySnapshot(epoch);
  for (const entry of entries) put(snapshot, entry);
  return snapshot;
}

/** Puts an entry into a snapshot unless the same or a newer version is stored. Returns whether it was put. */
export function put(snapshot: Snapshot, entry: SnapshotEntry): boolean {
  if (isEntryOf("organization", entry))
    return snapshot.organizations.put(entry.address.organizationId, entry.value);
  if (isEntryOf("key", entry)) return snapshot.keys.put(entry.address.keyId, ownedKey(entry));
  if (isEntryOf("environment", entry)) return deleteEnvironment(snapshot, entry);
  if (isEntryOf("flag", entry)) return putFlag(snapshot, entry);
  return false;
}

function ownedKey({ address, value }: EntryOf<"key">): KeyEntry | DeletedKey {
  return isDeleted(value) ? { ...value, organization_id: address.organizationId } : value;
}

/** Deletes an environment. Its keys stay until their own deletions arrive; the key directory rejects them meanwhile. */
function deleteEnvironment(
  { environments, deletedEnvironments }: Snapshot,
  { address: { environmentId, organizationId }, value }: EntryOf<"environment">,
): boolean {
  if (!isDeleted(value)) return false;
  environments.delete(environmentId);
  return deletedEnvironments.put(environmentId, { ...value, organization_id: organizationId });
}

function putFlag(
  { environments, deletedEnvironments }: Snapshot,
  { address: { organizationId, environmentId, flagId }, value }: EntryOf<"flag">,
): boolean {
  if (deletedEnvironments.has(environmentId)) return false;
  let environment = environments.get(environmentId);
  if (environment === undefined) {
    const flags = new NewestWins<FlagEntry | Tombstone>();
    environment = { organizationId, environmentId, projectId: undefined, flags };
    environments.set(environmentId, environment);
  }
  if (isDeleted(value)) return environment.flags.put(flagId, value);
  // Uses the id from the value, because the id from the address is a part of a longer string that would stay in memory.
  if (!environment.flags.put(value.flag_id, value)) return false;
  shareWithin(environment, value);
  return true;
}

/**
 * Replaces the parts that flags have in common by one shared object. Parsing creates separate strings and arrays for
 * every entry, which are more than half of its memory.
 */
function shareWithin(environment: EnvironmentFlags, flag: FlagEntry): void {
  environment.projectId ??= flag.project_id;
  flag.organization_id = environment.organizationId;
  if (flag.project_id === environment.projectId) flag.project_id = environment.projectId;
  flag.environment_id = environment.environmentId;
  if (flag.targeting_rules.length === 0) flag.targeting_rules = noRules;
}

const noRules: FlagEntry["targeting_rules"] = [];

/** The ids of everything that differs between two states of a snapshot. Empty if they are equal. */
export type ChangedIds = {
  environments: ReadonlySet<string>;
  keys: ReadonlySet<string>;
  organizations: ReadonlySet<string>;
};

export function isNothing(changed: ChangedIds): boolean {
  return changed.environments.size + changed.keys.size + changed.organizations.size === 0;
}

/** Compares two snapshots. Entries are compared by identity, so shared entries are unchanged. */
export function changedBetween(before: Snapshot | undefined, after: Snapshot): ChangedIds {
  return {
    environments: new Set([
      ...differingIds(before?.environments, after.environments, haveSameFlags),
      ...differingIds(before?.deletedEnvironments, after.deletedEnvironments, Object.is),
    ]),
    keys: differingIds(before?.keys, after.keys, Object.is),
    organizations: differingIds(before?.organizations, after.organizations, Object.is),
  };
}

function differingIds<V>(
  before: ReadonlyMap<string, V> | undefined,
  after: ReadonlyMap<string, V>,
  areSame: (one: V, other: V) => boolean,
): ReadonlySet<string> {
  const ids = new Set<string>();
  for (const [id, value] of after) {
    const earlier = before?.get(id);
    if (earlier === undefined || !areSame(earlier, value)) ids.add(id);
  }
  if (before !== undefined) for (const id of before.keys()) if (!after.has(id)) ids.add(id);
  return ids;
}

function haveSameFlags({ flags: before }: EnvironmentFlags, { flags: after }: EnvironmentFlags) {
  if (before.size !== after.size) return false;
  for (const [flagId, entry] of after) if (before.get(flagId) !== entry) return false;
  return true;
}
