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
 * Everything that an edge knows. It changes in place, and only within one turn of the event loop, so a
 * reader that does not wait in between sees one consistent state. An entry itself never changes after it
 * was taken: another version is another object. Only `takeEntries` and `replaceSnapshot` make changes.
 *
 * Entries are kept in the words of the contract. They are the language that all services share, and
 * the cache on disk is written from them and checked by their own schemas.
 */
export type Snapshot = {
  /** Names the writing of the bucket that this comes from; versions compare only within one epoch. */
  epoch: string;
  organizations: NewestWins<OrganizationEntry | Tombstone>;
  keys: NewestWins<KeyEntry | DeletedKey>;
  environments: Map<string, EnvironmentFlags>;
  /** Environments that were deleted. Their flags are not kept, and their keys do not work. */
  deletedEnvironments: NewestWins<DeletedEnvironment>;
};

/** The flags of one environment by their ids, with the deleted ones that are still remembered. */
export type EnvironmentFlags = {
  organizationId: string;
  environmentId: string;
  /** Undefined until the first live flag is taken. */
  projectId: string | undefined;
  flags: NewestWins<FlagEntry | Tombstone>;
};

/** A deletion does not say whose key it was, but the key's address in the bucket begins with it. */
export type DeletedKey = Tombstone & { organization_id: string };

/** The same holds for the deletion of an environment. */
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
      // Its name is for people; no answer of an edge depends on it.
      return undefined;
  }
}

function entry<Address, Value>(address: Address, value: Value | undefined) {
  return value === undefined ? undefined : { address, value };
}

/** A snapshot's entries one by one, from which `buildSnapshot` makes the same snapshot again. */
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

/** How many entries of each kind there are, deleted ones apart. */
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
