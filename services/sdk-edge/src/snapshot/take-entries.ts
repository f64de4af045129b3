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

/** An entry that replaced an older one, or nothing. */
export type TakenEntry = SnapshotEntry & { before: LiveEntry | Tombstone | undefined };

/**
 * Puts entries into a snapshot, which changes in place. Returns the ids of the changes, and the entries that replaced an
 * older version, in the order of arrival. Versions decide, not arrival: an entry that comes late or twice changes
 * nothing, an older version of a deleted flag does not restore it, and the same entries in any order end in the same
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

/** The snapshot that a full read describes, whatever was known before. */
export function buildSnapshot(epoch: string, entries: Iterable<SnapshotEntry>): Snapshot {
  const snapshot = emptySnapshot(epoch);
  for (const entry of entries) put(snapshot, entry);
  return snapshot;
}

/** Puts an entry into a snapshot unless the same or a newer version is held. Returns whether it was put. */
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

/** Its keys stay until their own deletions arrive. The key directory rejects them. */
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
  // The address is a part of a longer text, all of which it would keep in memory.
  if (!environment.flags.put(value.flag_id, value)) return false;
  shareWithin(environment, value);
  return true;
}

/**
 * Replaces the parts that a flag has in common with others by one shared object. Parsing gives every entry
 * strings and arrays of its own, which are more than half of its memory.
 */
function shareWithin(environment: EnvironmentFlags, flag: FlagEntry): void {
  environment.projectId ??= flag.project_id;
  flag.organization_id = environment.organizationId;
  if (flag.project_id === environment.projectId) flag.project_id = environment.projectId;
  flag.environment_id = environment.environmentId;
  if (flag.targeting_rules.length === 0) flag.targeting_rules = noRules;
}

const noRules: FlagEntry["targeting_rules"] = [];

/** The ids of what differs between two states of a snapshot. Empty when they are equal. */
export type ChangedIds = {
  environments: ReadonlySet<string>;
  keys: ReadonlySet<string>;
  organizations: ReadonlySet<string>;
};

export function isNothing(changed: ChangedIds): boolean {
  return changed.environments.size + changed.keys.size + changed.organizations.size === 0;
}

/** Compares two snapshots. Entries are compared by identity: those that both share have not changed. */
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
