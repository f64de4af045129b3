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
 * Which flags exist in which environments, in memory: fed from the snapshot, so that nobody is asked
 * when a schedule is set. Versions decide, not arrival: a flag that was deleted stays deleted whatever
 * older news of it turns up.
 */
export type FlagScope = FlagAddress;
export type KnownFlag = { projectId: string };

/** Finds a flag in an environment, if it exists. */
export type FindFlag = (scope: FlagScope) => Promise<KnownFlag | undefined>;

export type FlagDirectory = {
  /** Begins a replacement by a whole snapshot's flags. The present ones stay in use until `finish`. */
  beginReplacing(): {
    take(scope: FlagScope, entry: FlagEntry | Tombstone): void;
    finish(): void;
  };
  /** Applies an entry unless it is older. Returns whether the entry was newer. */
  apply(scope: FlagScope, entry: FlagEntry | Tombstone): boolean;
  /** The entry of this flag does not fit its schema. */
  unreadable(scope: FlagScope): void;
  /** The state of a flag. One with an unreadable entry exists, or has existed. */
  statusOf(scope: FlagScope): "exists" | "deleted" | "unreadable" | "unknown";
  /** The same at once, or after a moment where the flag is so new that we may not have heard of it. */
  find: FindFlag;
};

/**
 * What was just created works on every service within a second. Management's ids say when they were
 * made, so only a flag or an environment that is younger than this is waited for; an invented id costs
 * a look.
 */
const newMs = 5_000;
const newFlagTimeoutMs = 1_000;

export function createFlagDirectory(options: {
  now: () => number;
  /** How long what is new is waited for. */
  timeoutMs?: number;
}): FlagDirectory {
  const { timeoutMs = newFlagTimeoutMs } = options;
  let known = createFlagIndex();
  /** Since the last full read began; those of an abandoned read are among them, which does no harm. */
  let unreadableKeys = new Set<string>();
  let unreadableInRead = unreadableKeys;
  const awaited = new Map<string, Set<() => void>>();

  function lookUp(scope: FlagScope): KnownFlag | undefined {
    const projectId = known.projectOf(scope.environmentId);
    return known.statusOf(scope) === "exists" && projectId !== undefined
      ? { projectId }
      : undefined;
  }

  /** Whether the flag is so new, or the environment, that we may not have heard of it. */
  function mayAppear({ flagId, environmentId }: FlagScope): boolean {
    const now = options.now();
    return (isNew(flagId, now) && !known.hasFlag(flagId)) || isNew(environmentId, now);
  }

  /** Resolves when the flag turns up, or when it is too late. */
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
      const statusOf = known.statusOf(scope);
      return statusOf === "unknown" && unreadableKeys.has(keyOf(scope)) ? "unreadable" : statusOf;
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

/**
 * Keeps the directories of keys and flags in step with the snapshot, and reports deleted flags, so that
 * their schedules can be cancelled.
 */
export type OnFlagsGone = {
  /** A flag was deleted in an environment, while the directory was current. */
  deleted(scope: FlagScope): void;
  /** The directory is current, at the start and after every interruption. */
  current(): void;
};

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
  /** Returns the flag that this entry deletes. */
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
    // A restored database can have flags whose tombstones a reader reads here. `current` follows, and starts
    // the looks, which wait for the rebuild.
    resume: apply,
    rejected(key) {
      const address = parseEntryKey(key);
      if (address?.kind === "flag") flags.unreadable(address);
    },
  };
}
