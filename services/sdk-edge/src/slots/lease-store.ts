/**
 * What edges share about their slots: entries that are read, and written only over the revision that
 * the writer has read. Whoever implements it may answer late, or not know whether it has written, but
 * never lets two writes over one revision succeed.
 */
export type LeaseStore = {
  /** Makes sure that there is something to write to; false when that cannot be done now. */
  prepare(): Promise<boolean>;
  /** What stood under a key a moment ago. It may be older than what was written last. */
  read(key: string): Promise<ReadEntry>;
  /** Writes over a revision; 0 means that nothing has stood there. */
  write(key: string, value: object, over: number): Promise<Written>;
  /** Forgets all that has ever stood under a key. */
  forget(key: string): Promise<void>;
  /** Hands over every edge's lease, and each change as it comes. */
  follow(follower: LeaseFollower): void;
  /** True while nothing is missing of what was handed over, as far as one can know. */
  isCurrent(): boolean;
};

export type StoredEntry = {
  /** As it was parsed; undefined for what is no JSON, null for what somebody has deleted. */
  value: unknown;
  revision: number;
};

export type ReadEntry =
  | { outcome: "read"; entry: StoredEntry | undefined }
  /** Nobody answered. */
  | { outcome: "unknown" };

export type Written =
  | { outcome: "written"; revision: number }
  /** Something else stands there by now. */
  | { outcome: "conflict" }
  /** Nobody answered: it may have been written, or may be yet. */
  | { outcome: "unknown" };

export type LeaseFollower = {
  /** Everything is handed over anew; what is missing then is no more. */
  onBegin(): void;
  onEntry(leaseId: string, entry: StoredEntry): void;
  onCaughtUp(): void;
};
