import {
  createdAtMsOf,
  type FlagEntry,
  isEntryOf,
  type SnapshotEntry,
  type Tombstone,
} from "@halyard/contracts";
import { createFlagIndex, type FlagAddress, type SnapshotPart } from "@halyard/snapshot";

/**
 * An in-memory directory of the flags in each environment. It follows the snapshot, so that setting a schedule
 * needs no request to another service. Versions decide, not the order of arrival: a deleted flag stays deleted
 * even if an older entry arrives later.
 */
export type FlagScope = FlagAddress;
type KnownFlag = { projectId: string };

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
  statusOf(scope: FlagScope): "exists" | "deleted" | "unknown";
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
  /** Returns whether an environment was deleted, and its flags with it. */
  hasEnded: (environmentId: string) => boolean;
  /** Maximum wait for a new flag, in milliseconds. */
  timeoutMs?: number;
}): FlagDirectory {
  const { timeoutMs = newFlagTimeoutMs } = options;
  let known = createFlagIndex();
  const awaited = new Map<string, Set<() => void>>();

  function lookUp(scope: FlagScope): KnownFlag | undefined {
    if (known.statusOf(scope) !== "exists" || options.hasEnded(scope.environmentId))
      return undefined;
    const projectId = known.projectOf(scope.environmentId);
    return projectId === undefined ? undefined : { projectId };
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
      return {
        take: (scope, entry) => void next.apply(scope, entry),
        finish() {
          known = next;
          for (const waiters of awaited.values()) for (const resolve of waiters) resolve();
        },
      };
    },
    apply(scope, entry) {
      if (!known.apply(scope, entry)) return false;
      for (const resolve of awaited.get(keyOf(scope)) ?? []) resolve();
      return true;
    },
    statusOf: (scope) => known.statusOf(scope),
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
 * Returns the part of the snapshot that fills the directory. `onDeleted` is called when a flag is deleted in an
 * environment while the directory is current.
 */
export function partOfFlags(
  flags: FlagDirectory,
  onDeleted: (scope: FlagScope) => void,
): SnapshotPart {
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
      if (deleted !== undefined) onDeleted(deleted);
    },
    // Deletions that arrive here are left to the sweep, because a restored database may have the flags.
    resume: apply,
  };
}
