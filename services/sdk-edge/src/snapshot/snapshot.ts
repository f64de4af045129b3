import type { FlagEntry, KeyEntry, OrganizationEntry, Tombstone } from "@halyard/contracts";
import type { NewestWins } from "./newest-wins.ts";

/**
 * Everything that an edge knows, as one value that never changes: a change makes another snapshot,
 * which shares with the old one all that stayed the same. So a reader holds a consistent state for as
 * long as it likes, and what differs between two snapshots shows by identity.
 *
 * Entries are kept in the words of the contract. They are the language that all services share, and
 * the cache on disk is written from them and checked by their own schemas.
 */
export type Snapshot = {
  /** Names the writing of the bucket that this comes from; versions compare only within one epoch. */
  epoch: string;
  organizations: NewestWins<OrganizationEntry | Tombstone>;
  keys: NewestWins<KeyEntry | DeletedKey>;
  environments: ReadonlyMap<string, EnvironmentFlags>;
};

/** The flags of one environment by their ids, with the deleted ones that are still remembered. */
export type EnvironmentFlags = {
  organizationId: string;
  environmentId: string;
  flags: NewestWins<FlagEntry | Tombstone>;
};

/** A deletion does not say whose key it was, but the key's address in the bucket begins with it. */
export type DeletedKey = Tombstone & { organization_id: string };

export function emptySnapshot(epoch: string): Snapshot {
  return { epoch, organizations: new Map(), keys: new Map(), environments: new Map() };
}

export function isDeleted<E extends object>(entry: E): entry is E & Tombstone {
  return "deleted" in entry;
}
