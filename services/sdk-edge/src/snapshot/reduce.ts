import type {
  EntryAddress,
  FlagEntry,
  KeyEntry,
  LiveEntry,
  OrganizationEntry,
  Tombstone,
} from "@halyard/contracts";
import type { Changed } from "./changed.ts";
import { NewestWins } from "./newest-wins.ts";
import {
  type EnvironmentFlags,
  emptySnapshot,
  entryAt,
  isDeleted,
  type Snapshot,
} from "./snapshot.ts";

/** An entry of the bucket: where, and what. */
export type Entry = { address: EntryAddress; value: LiveEntry | Tombstone };

/** An entry that replaced an older one, or nothing. */
export type TakenEntry = Entry & { before: LiveEntry | Tombstone | undefined };

export type Reduction = {
  changed: Changed;
  /** The entries that were newer than the held ones, in the order of arrival. */
  taken: readonly TakenEntry[];
};

/**
 * Puts entries into a snapshot and returns the changes. Versions decide, not arrival: an entry that comes
 * late or twice changes nothing, an older version of a deleted flag does not restore it, and the same
 * entries in any order end in the same snapshot. The cost depends on the entries alone.
 */
export function reduce(snapshot: Snapshot, entries: Iterable<Entry>): Reduction {
  const environments = new Set<string>();
  const keys = new Set<string>();
  const organizations = new Set<string>();
  const taken: TakenEntry[] = [];

  for (const { address, value } of entries) {
    const before = entryAt(snapshot, address);
    if (!put(snapshot, { address, value })) continue;
    taken.push({ address, value, before });
    if (address.kind === "flag" || address.kind === "environment")
      environments.add(address.environmentId);
    else if (address.kind === "key") keys.add(address.keyId);
    else organizations.add(address.organizationId);
  }
  return { changed: { environments, keys, organizations }, taken };
}

/** The snapshot that a full read describes, whatever was known before. */
export function buildSnapshot(epoch: string, entries: Iterable<Entry>): Snapshot {
  const snapshot = emptySnapshot(epoch);
  for (const entry of entries) put(snapshot, entry);
  return snapshot;
}

/** Puts an entry into a snapshot unless the same or a newer version is held. Returns whether it was put. */
export function put(snapshot: Snapshot, { address, value }: Entry): boolean {
  switch (address.kind) {
    case "organization":
      return snapshot.organizations.put(
        address.organizationId,
        value as OrganizationEntry | Tombstone,
      );
    case "key":
      return snapshot.keys.put(address.keyId, ownedKey(address.organizationId, value));
    case "flag":
      return (
        !snapshot.deletedEnvironments.has(address.environmentId) &&
        putFlag(environmentFor(snapshot, address), address.flagId, value)
      );
    case "environment":
      return isDeleted(value) && deleteEnvironment(snapshot, address, value);
    case "project":
      return false;
  }
}

function ownedKey(organizationId: string, value: LiveEntry | Tombstone) {
  return isDeleted(value) ? { ...value, organization_id: organizationId } : (value as KeyEntry);
}

/** Its keys stay until their own deletions arrive. The key directory rejects them. */
function deleteEnvironment(
  { environments, deletedEnvironments }: Snapshot,
  { environmentId, organizationId }: Extract<EntryAddress, { kind: "environment" }>,
  deletion: Tombstone,
): boolean {
  environments.delete(environmentId);
  return deletedEnvironments.put(environmentId, { ...deletion, organization_id: organizationId });
}

type FlagAddress = Extract<EntryAddress, { kind: "flag" }>;

function environmentFor(
  { environments }: Snapshot,
  { organizationId, environmentId }: FlagAddress,
): EnvironmentFlags {
  let environment = environments.get(environmentId);
  if (environment === undefined) {
    const flags = new NewestWins<FlagEntry | Tombstone>();
    environment = { organizationId, environmentId, projectId: undefined, flags };
    environments.set(environmentId, environment);
  }
  return environment;
}

function putFlag(
  environment: EnvironmentFlags,
  flagId: string,
  value: LiveEntry | Tombstone,
): boolean {
  if (isDeleted(value)) return environment.flags.put(flagId, value);
  const flag = value as FlagEntry;
  if (!environment.flags.put(flag.flag_id, flag)) return false;
  shareWithin(environment, flag);
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
