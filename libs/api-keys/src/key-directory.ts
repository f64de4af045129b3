import {
  type EntryOf,
  isEntryOf,
  type KeyEntry,
  type SnapshotEntry,
  type Tombstone,
} from "@halyard/contracts";
import type { SnapshotPart } from "@halyard/jetstream";
import { hasShapeOf, idIn, secretIn } from "./api-key.ts";
import type { KeySignatures } from "./key-signatures.ts";
import {
  createKeyVerification,
  type DirectoryKey,
  expiryOf,
  haveEqualContent,
  type KeyVerification,
  type LiveKey,
  type StoredKey,
} from "./key-verification.ts";

/**
 * Every API key that works, in memory. The directory is fed from the snapshot, so a request's key is
 * found, or found missing, without asking anybody. It remembers deletions for as long as the snapshot
 * does: a late older entry cannot bring a revoked key back. The deletion of an environment ends all of its keys, also
 * those whose entries arrive later.
 *
 * No key works before the signature of its entry was verified. That takes 0.1 ms, so the entries of a full read
 * are verified when their keys are first used, and later ones when they arrive: a forged entry must not take the
 * place of a genuine one.
 */
export type KeyDirectory = SnapshotPart & {
  /**
   * Takes the entry of a key, unless a newer one is known or its signature is not valid, and the deletion of an
   * environment, whose signature the follower has verified. Returns whether it was taken.
   */
  apply(entry: SnapshotEntry): boolean;
  /** Returns whether an entry may be applied: it is not of a key, or it is newer and has a valid signature. */
  accepts(entry: SnapshotEntry): boolean;
  /** Returns an entry of a full read, or the known one in its place if the entry is changed without a valid signature. */
  choose(entry: SnapshotEntry): SnapshotEntry;
  /** Replaces all keys and deleted environments. The caller has verified the changed entries. */
  replace(
    entries: Iterable<readonly [keyId: string, entry: KeyEntry | Tombstone]>,
    deletedEnvironments: Iterable<string>,
  ): void;
  /** Ends the keys of a deleted environment. The caller has verified the deletion. */
  endEnvironment(environmentId: string): void;
  hasEnded(environmentId: string): boolean;
  /** Takes a changed entry, unless a newer one is known. The caller has verified its signature. */
  put(keyId: string, entry: KeyEntry | Tombstone): boolean;
  /**
   * The key that a text is, if it is known, not expired and its secret is right. Secrets are compared
   * in a time that does not depend on where they differ.
   */
  verify(text: string, nowMs: number): DirectoryKey | undefined;
  /** A key by its id, if it is known and not expired; for what was proved in another way. */
  find(keyId: string, nowMs: number): DirectoryKey | undefined;
  /** Returns whether an entry of a key exists and has not expired. Does not verify its signature. */
  isLive(keyId: string, nowMs: number): boolean;
  /** The version of the entry that is held for a key; undefined while none is. */
  versionOf(keyId: string): number | undefined;
  /** Verifies the entry `complete` of the snapshot that this directory is read from. */
  isGenuineComplete: KeySignatures["isGenuineComplete"];
  /** Verifies the deletion of an environment, a project or an organization. */
  isGenuineDeletion: KeySignatures["isGenuine"];
  readonly size: number;
};

/** The state of a directory. A full read replaces both. */
type Keys = {
  stored: Map<string, StoredKey>;
  /** Environments that were deleted. */
  ended: Set<string>;
};

export function createKeyDirectory(signatures: KeySignatures): KeyDirectory {
  const keys: Keys = { stored: new Map(), ended: new Set() };
  const verification = createKeyVerification(signatures);

  function chosen({ address, value }: EntryOf<"key">): KeyEntry | Tombstone {
    const known = keys.stored.get(address.keyId)?.entry;
    const isChanged = known !== undefined && !haveEqualContent(known, value);
    return isChanged && !verification.isGenuine(address, value) ? known : value;
  }

  const isNewer = (keyId: string, { version }: KeyEntry | Tombstone) =>
    version > (keys.stored.get(keyId)?.entry.version ?? 0);

  const accepts = (entry: SnapshotEntry) =>
    !isEntryOf("key", entry) ||
    (isNewer(entry.address.keyId, entry.value) &&
      verification.isGenuine(entry.address, entry.value));

  function put(keyId: string, entry: KeyEntry | Tombstone): boolean {
    if (!isNewer(keyId, entry)) return false;
    keys.stored.set(keyId, { entry });
    return true;
  }

  return {
    ...createLookups(keys, verification),
    replace(entries, deletedEnvironments) {
      const known = keys.stored;
      keys.stored = new Map();
      keys.ended = new Set(deletedEnvironments);
      for (const [keyId, entry] of entries)
        keys.stored.set(keyId, withKnown(known.get(keyId), entry));
    },
    beginReplacing: () => beginReplacing(keys, chosen),
    apply(entry) {
      const environmentId = deletedEnvironment(entry);
      if (environmentId !== undefined) keys.ended.add(environmentId);
      if (!isEntryOf("key", entry)) return environmentId !== undefined;
      return accepts(entry) && put(entry.address.keyId, entry.value);
    },
    accepts,
    choose: (entry) =>
      isEntryOf("key", entry) ? { address: entry.address, value: chosen(entry) } : entry,
    endEnvironment: (environmentId) => void keys.ended.add(environmentId),
    put,
    isGenuineComplete: signatures.isGenuineComplete,
    isGenuineDeletion: signatures.isGenuine,
    get size() {
      return keys.stored.size;
    },
  };
}

function createLookups(
  keys: Keys,
  verification: KeyVerification,
): Pick<KeyDirectory, "hasEnded" | "verify" | "find" | "isLive" | "versionOf"> {
  const live = (keyId: string, nowMs: number) =>
    liveKey(keys.stored.get(keyId), { ended: keys.ended, nowMs });
  return {
    hasEnded: (environmentId) => keys.ended.has(environmentId),
    verify(text, nowMs) {
      const keyId = idIn(text);
      const found = live(keyId, nowMs);
      if (found === undefined || !hasShapeOf(found.entry.key_kind, text)) return undefined;
      return verification.bySecret(keyId, found, secretIn(text))?.key;
    },
    find(keyId, nowMs) {
      const found = live(keyId, nowMs);
      return found && verification.bySignature(keyId, found)?.key;
    },
    isLive: (keyId, nowMs) => live(keyId, nowMs) !== undefined,
    versionOf: (keyId) => keys.stored.get(keyId)?.entry.version,
  };
}

/** Collects a full read, whose entries `chosen` compares with the known ones. */
function beginReplacing(
  keys: Keys,
  chosen: (entry: EntryOf<"key">) => KeyEntry | Tombstone,
): ReturnType<KeyDirectory["beginReplacing"]> {
  const next: Keys = { stored: new Map(), ended: new Set() };
  return {
    take(entry) {
      const environmentId = deletedEnvironment(entry);
      if (environmentId !== undefined) next.ended.add(environmentId);
      if (!isEntryOf("key", entry)) return;
      const { keyId } = entry.address;
      const value = chosen(entry);
      if ((next.stored.get(keyId)?.entry.version ?? 0) < value.version)
        next.stored.set(keyId, withKnown(keys.stored.get(keyId), value));
    },
    finish: () => void Object.assign(keys, next),
  };
}

/** A verified entry stays verified under another signature of the same content. */
function withKnown(known: StoredKey | undefined, entry: KeyEntry | Tombstone): StoredKey {
  return known?.verified && haveEqualContent(known.entry, entry) ? known : { entry };
}

/** Returns a live entry that has not expired. Its signature may not have been verified yet. */
function liveKey(
  found: StoredKey | undefined,
  { ended, nowMs }: { ended: ReadonlySet<string>; nowMs: number },
): LiveKey | undefined {
  if (found === undefined || found.verified === false || "deleted" in found.entry) return undefined;
  if (ended.has(found.entry.environment_id)) return undefined;
  const expiresAtMs = found.verified ? found.verified.key.expiresAtMs : expiryOf(found.entry);
  if (expiresAtMs !== undefined && expiresAtMs <= nowMs) return undefined;
  return found as LiveKey;
}

function deletedEnvironment(entry: SnapshotEntry): string | undefined {
  const isDeleted = isEntryOf("environment", entry) && "deleted" in entry.value;
  return isDeleted ? entry.address.environmentId : undefined;
}
