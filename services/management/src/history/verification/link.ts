/** Where a chain of entries belongs: a flag's state in an environment. */
export type ChainPlace = { flagId: string; environmentId: string };

/** An entry of the history as a link of its chain. Hashes are in hexadecimal. */
export type Link = ChainPlace & {
  id: string;
  sequence: number;
  changedAt: Date;
  /** Empty for the first link. */
  previousHash: string;
  hash: string;
  /** Whether the hash is that of what the entry says. */
  intact: boolean;
  /** The hash of the newest entry of the chain that retention removed; empty where it removed none. */
  removedHash: string;
  /** Number of entries of the chain that retention removed. */
  removedEntries: number;
  /** True if its flag exists or a deletion is recorded. Looked up for first links only. */
  isOfKnownFlag: boolean;
};

/** An entry as it is named to people. */
export type NamedEntry = { id: string; changedAt: Date };

/** What is wrong with a chain, at the first place where it is. */
export type Break = { place: ChainPlace } & (
  | { kind: "changed"; entry: NamedEntry }
  | { kind: "inserted"; entry: NamedEntry; next: NamedEntry }
  | { kind: "missing_before"; entry: NamedEntry }
  | { kind: "missing_between"; entry: NamedEntry; next: NamedEntry }
  | { kind: "no_history" }
  | { kind: "newest_differs"; entry: NamedEntry }
  | { kind: "no_state" }
  | { kind: "no_history_of_deleted" }
  | { kind: "newest_differs_from_deleted"; entry: NamedEntry }
  | { kind: "flag_unknown" }
  | { kind: "not_audited"; entry: NamedEntry }
  | { kind: "no_history_of_ended" }
  | { kind: "newest_differs_from_ended"; entry: NamedEntry }
  | { kind: "ended_with_state" }
  | { kind: "anchored_missing"; entry: NamedEntry }
);
