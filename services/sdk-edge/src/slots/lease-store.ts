/**
 * The bucket LEASES, which all edges share. An implementation may answer late or not at all, but never
 * lets two writes over the same revision succeed.
 */
export type LeaseStore = {
  /** Creates the bucket if it does not exist. Returns false when NATS did not answer. */
  prepare(): Promise<boolean>;
  /** Writes over a revision; 0 means that the key has no value. */
  write(key: string, value: object, over: number): Promise<Written>;
  /** Removes a key and all its revisions. */
  forget(key: string): Promise<void>;
  /** Delivers every entry, and then each change, in the order of the writes. */
  follow(follower: LeaseFollower): void;
  isConnected(): boolean;
  /** True while the connection is up and every entry of the bucket has been delivered. */
  isCurrent(): boolean;
};

export type StoredEntry = {
  /** Parsed JSON; undefined for anything else, null for a deleted entry. */
  value: unknown;
  revision: number;
};

export type Written =
  | { outcome: "written"; revision: number }
  /** The key has another revision. */
  | { outcome: "conflict" }
  /** No answer. The write may have succeeded, or may still succeed. */
  | { outcome: "unknown" };

export type LeaseFollower = {
  /** All entries follow from the beginning. An entry that is missing by `onCaughtUp` no longer exists. */
  onBegin(): void;
  onEntry(key: string, entry: StoredEntry): void;
  onCaughtUp(): void;
};
