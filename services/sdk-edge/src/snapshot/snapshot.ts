import type {
  EntryAddress,
  FlagEntry,
  KeyEntry,
  OrganizationEntry,
  SnapshotEntry,
  Tombstone,
} from "@halyard/contracts";
import { NewestWins } from "./newest-wins.ts";

/**
 * The data of an edge. It changes in place, and only within one turn of the event loop, so a reader that does not await
 * sees one consistent state. The content of an entry never changes: another version is another object. `put`
 * only replaces equal parts by shared objects. Once a snapshot is held, only `takeEntries` and `replaceSnapshot` change it.
 *
 * Entries have the names of the contract, which all services share. The cache on disk is written from them and checked
 * against their schemas.
 */
export type Snapshot = {
  /**
   * Identifies the full write of the bucket that the entries come from. Versions are comparable only within one epoch.
   */
  epoch: string;
  organizations: NewestWins<OrganizationEntry | Tombstone>;
  keys: NewestWins<KeyEntry | DeletedKey>;
  environments: Map<string, EnvironmentFlags>;
  /** Deleted environments. Their flags are not kept, and their keys are rejected. */
  deletedEnvironments: NewestWins<DeletedEnvironment>;
};

/** The flags of one environment by id, including recent deletions. */
export type EnvironmentFlags = {
  organizationId: string;
  environmentId: string;
  /** Undefined until the first live flag is taken. */
  projectId: string | undefined;
  flags: NewestWins<FlagEntry | Tombstone>;
};

/** The deletion of a key. It does not name the organization, which is taken from the key's address in the bucket. */
export type DeletedKey = Tombstone & { organization_id: string };

/** The deletion of an environment. Its organization is also taken from the address. */
export type DeletedEnvironment = Tombstone & { organization_id: string };

export function emptySnapshot(epoch: string): Snapshot {
  return {
    epoch,
    organizations: new NewestWins(),
    keys: new NewestWins(),
    environments: new Map(),
    deletedEnvironments: new NewestWins(),
  };
}

export function isDeleted<E extends object>(entry: E): entry is E & Tombstone {
  return "deleted" in entry;
}

/** Returns the entry at an address; undefined for the kinds that a snapshot does not keep. */
export function entryAt(snapshot: Snapshot, address: EntryAddress): SnapshotEntry | undefined {
  switch (address.kind) {
    case "organization":
      return entry(address, snapshot.organizations.get(address.organizationId));
    case "key":
      return entry(address, snapshot.keys.get(address.keyId));
    case "flag": {
      const environment = snapshot.environments.get(address.environmentId);
      return entry(address, environment?.flags.get(address.flagId));
    }
    case "environment":
      return entry(address, snapshot.deletedEnvironments.get(address.environmentId));
    case "project":
      // No response of an edge depends on a project's entry, which contains its name.
      return undefined;
  }
}

function entry<Address, Value>(address: Address, value: Value | undefined) {
  return value === undefined ? undefined : { address, value };
}

/** Yields the entries of a snapshot, from which `buildSnapshot` creates an equal snapshot. */
export function* entriesOf(snapshot: Snapshot): Generator<SnapshotEntry> {
  for (const [organizationId, value] of snapshot.organizations)
    yield { address: { kind: "organization", organizationId }, value };
  for (const [environmentId, value] of snapshot.deletedEnvironments)
    yield {
      address: { kind: "environment", organizationId: value.organization_id, environmentId },
      value,
    };
  for (const [keyId, value] of snapshot.keys)
    yield { address: { kind: "key", organizationId: value.organization_id, keyId }, value };
  for (const { organizationId, environmentId, flags } of snapshot.environments.values())
    for (const [flagId, value] of flags)
      yield { address: { kind: "flag", organizationId, environmentId, flagId }, value };
}

/** Returns the number of entries of each kind. Deletions are counted separately. */
export function countEntries(snapshot: Snapshot): Record<EntryCount, number> {
  const counts = { organization: 0, key: 0, flag: 0, environment: 0, deleted: 0 };
  counts.environment = snapshot.environments.size;
  counts.deleted = snapshot.deletedEnvironments.size;
  for (const value of snapshot.organizations.values())
    counts[isDeleted(value) ? "deleted" : "organization"] += 1;
  for (const value of snapshot.keys.values()) counts[isDeleted(value) ? "deleted" : "key"] += 1;
  for (const { flags } of snapshot.environments.values())
    for (const value of flags.values()) counts[isDeleted(value) ? "deleted" : "flag"] += 1;
  return counts;
}

export type EntryCount = "organization" | "key" | "flag" | "environment" | "deleted";
