import { followDirectory as followParts, type KeyDirectory } from "@halyard/api-keys";
import {
  createdAtMsOf,
  everythingFilter,
  type FlagEntry,
  isEntryOf,
  parseEntryKey,
  type SnapshotEntry,
  type Tombstone,
} from "@halyard/contracts";
import {
  createFlagIndex,
  type FlagAddress,
  type FollowedSnapshot,
  type SnapshotPart,
} from "@halyard/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";

/**
 * An in-memory directory of the flags in each environment. It follows the snapshot, so that setting a schedule
 * needs no request to another service. Versions decide, not the order of arrival: a deleted flag stays deleted
 * even if an older entry arrives later.
 */
export type FlagScope = FlagAddress;
export type KnownFlag = { projectId: string };

/** Returns a flag in an environment, or undefined if it does not exist. */
export type FindFlag = (scope: FlagScope) => Promise<KnownFlag | undefined>;

export type FlagDirectory = {
  /** Begins a replacement with the flags of a full snapshot. The current flags stay in use until `finish`. */
  beginReplacing(): {
    take(scope: FlagScope, entry: FlagEntry | Tombstone): void;
    finish(): void;
  };
  /** Applies an entry unless it is older. Returns whether the entry was newer. */
  apply(scope: FlagScope, entry: FlagEntry | Tombstone): boolean;
  /** Records that the entry of this flag does not match its schema. */
  unreadable(scope: FlagScope): void;
  /** Returns the state of a flag. A flag with an unreadable entry exists or has existed. */
  statusOf(scope: FlagScope): "exists" | "deleted" | "unreadable" | "unknown";
  /** Finds a flag. Waits briefly if the flag is so new that its entry may not have arrived yet. */
  find: FindFlag;
};

/**
 * Maximum age of a new flag or environment. A new flag works on every service within a second. Ids contain their
 * creation time, so the directory waits only for new ids. A made-up id usually costs only a lookup.
 */
const newMs = 5_000;
const newFlagTimeoutMs = 1_000;

export function createFlagDirectory(options: {
  now: () => number;
  /** Maximum wait for a new flag, in milliseconds. */
  timeoutMs?: number;
}): FlagDirectory {
  const { timeoutMs = newFlagTimeoutMs } = options;
  let known = createFlagIndex();
  /** Unreadable entries since the last full read began. Keys of an abandoned read stay, which is harmless. */
  let unreadableKeys = new Set<string>();
  let unreadableInRead = unreadableKeys;
  const awaited = new Map<string, Set<() => void>>();

  function lookUp(scope: FlagScope): KnownFlag | undefined {
    const projectId = known.projectOf(scope.environmentId);
    return known.statusOf(scope) === "exists" && projectId !== undefined
      ? { projectId }
      : undefined;
  }

  /** Returns whether the flag or the environment is so new that its entry may not have arrived yet. */
  function mayAppear({ flagId, environmentId }: FlagScope): boolean {
    const now = options.now();
    return (isNew(flagId, now) && !known.hasFlag(flagId)) || isNew(environmentId, now);
  }

  /** Resolves when the flag arrives or the wait times out. */
  function appears(scope: FlagScope): Promise<void> {
    const key = keyOf(scope);
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiters = awaited.get(key) ?? new Set();
    awaited.set(key, waiters.add(resolve));
    const timer = setTimeout(resolve, timeoutMs);
    return promise.finally(() => {
      clearTimeout(timer);
      waiters.delete(resolve);
      if (waiters.size === 0) awaited.delete(key);
    });
  }

  return {
    beginReplacing() {
      const next = createFlagIndex();
      unreadableInRead = new Set();
      return {
        take: (scope, entry) => void next.apply(scope, entry),
        finish() {
          known = next;
          unreadableKeys = unreadableInRead;
          for (const waiters of awaited.values()) for (const resolve of waiters) resolve();
        },
      };
    },
    apply(scope, entry) {
      if (!known.apply(scope, entry)) return false;
      for (const resolve of awaited.get(keyOf(scope)) ?? []) resolve();
      return true;
    },
    unreadable(scope) {
      for (const keys of [unreadableKeys, unreadableInRead]) keys.add(keyOf(scope));
    },
    statusOf(scope) {
      const status = known.statusOf(scope);
      return status === "unknown" && unreadableKeys.has(keyOf(scope)) ? "unreadable" : status;
    },
    async find(scope) {
      if (known.statusOf(scope) === "unknown" && mayAppear(scope)) await appears(scope);
      return lookUp(scope);
    },
  };
}

function keyOf({ flagId, environmentId }: FlagScope): string {
  return `${environmentId}.${flagId}`;
}

function isNew(id: string, nowMs: number): boolean {
  return Math.abs(nowMs - createdAtMsOf(id)) < newMs;
}

/** Receives deleted flags, so that their schedules can be cancelled. */
export type OnFlagsGone = {
  /** Called when a flag is deleted in an environment while the directory is current. */
  deleted(scope: FlagScope): void;
  /** Called when the directory becomes current: at the start and after every interruption. */
  current(): void;
};

/** Keeps the directories of keys and flags in step with the snapshot. */
export function followDirectory(options: {
  connection: NatsConnection;
  keys: KeyDirectory;
  flags: FlagDirectory;
  deletedEnvironments: SnapshotPart;
  onFlagsGone: OnFlagsGone;
  logger: Logger;
}): FollowedSnapshot {
  const { deletedEnvironments, flags, onFlagsGone } = options;
  return followParts({
    ...options,
    filter: everythingFilter,
    parts: [deletedEnvironments, partOfFlags(flags, onFlagsGone)],
    onCurrent: onFlagsGone.current,
  });
}

function partOfFlags(flags: FlagDirectory, onFlagsGone: OnFlagsGone): SnapshotPart {
  /** Applies an entry. Returns the flag that it deletes, if any. */
  function apply(entry: SnapshotEntry): FlagScope | undefined {
    if (!isEntryOf("flag", entry)) return undefined;
    const { address, value } = entry;
    return flags.apply(address, value) && "deleted" in value ? address : undefined;
  }

  return {
    beginReplacing() {
      const { take, finish } = flags.beginReplacing();
      return {
        take: (entry) => isEntryOf("flag", entry) && take(entry.address, entry.value),
        finish,
      };
    },
    apply(entry) {
      const deleted = apply(entry);
      if (deleted !== undefined) onFlagsGone.deleted(deleted);
    },
    // Deletions that arrive here are not reported, because a restored database may still have the flags.
    // `current` follows and schedules the checks, which wait for the rebuild.
    resume: apply,
    rejected(key) {
      const address = parseEntryKey(key);
      if (address?.kind === "flag") flags.unreadable(address);
    },
  };
}
