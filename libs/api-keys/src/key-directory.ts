import {
  type EntryOf,
  isEntryOf,
  type KeyEntry,
  type SnapshotEntry,
  type Tombstone,
} from "@halyard/contracts";
import type { SnapshotPart } from "@halyard/snapshot";
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
 * All valid API keys, in memory. The directory is filled from the snapshot, so the verification of a request's key
 * needs no other process. It keeps deletions for as long as the snapshot does, so that an older entry cannot restore a
 * revoked key. The deletion of an environment ends all of its keys, even those whose entries arrive later.
 *
 * A key works only after the signature of its entry was verified. Verification takes 0.1 ms, so the entries of a full
 * read are verified when their keys are first used. Later entries are verified when they arrive, so that a forged entry
 * cannot replace a genuine one.
 */
export type KeyDirectory = SnapshotPart & {
  /**
   * Applies the entry of a key if it is newer and its signature is valid. Applies the deletion of an environment, whose
   * signature the follower has verified. Returns whether the entry was applied.
   */
  apply(entry: SnapshotEntry): boolean;
  /** Returns whether an entry may be applied: an entry of a key must be newer and have a valid signature. */
  accepts(entry: SnapshotEntry): boolean;
  /** Returns an entry of a full read, or the known entry if that one differs and has no valid signature. */
  choose(entry: SnapshotEntry): SnapshotEntry;
  /** Replaces all keys and deleted environments. The caller has verified the changed entries. */
  replace(
    entries: Iterable<readonly [keyId: string, entry: KeyEntry | Tombstone]>,
    deletedEnvironments: Iterable<string>,
  ): void;
  /** Ends the keys of a deleted environment. The caller has verified the deletion. */
  endEnvironment(environmentId: string): void;
  hasEnded(environmentId: string): boolean;
  /** Stores an entry if it is newer. The caller has verified its signature. */
  put(keyId: string, entry: KeyEntry | Tombstone): boolean;
  /**
   * Returns the key for the text of an API key, if it is known and not expired and the secret is correct. The
   * comparison of secrets takes constant time.
   */
  verify(text: string, nowMs: number): DirectoryKey | undefined;
  /** Returns a key by its id, if it is known and not expired, for a caller that was authenticated by other means. */
  find(keyId: string, nowMs: number): DirectoryKey | undefined;
  /** Returns the version of a key's entry; undefined if there is none. */
  versionOf(keyId: string): number | undefined;
  /** Verifies the entry `complete` of the snapshot that this directory is read from. */
  isGenuineComplete: KeySignatures["isGenuineComplete"];
  /** Verifies the plans, or the deletion of an environment, a project or an organization. */
  isGenuine: KeySignatures["isGenuine"];
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
    isGenuine: signatures.isGenuine,
    get size() {
      return keys.stored.size;
    },
  };
}

function createLookups(
  keys: Keys,
  verification: KeyVerification,
): Pick<KeyDirectory, "hasEnded" | "verify" | "find" | "versionOf"> {
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
    versionOf: (keyId) => keys.stored.get(keyId)?.entry.version,
  };
}

/** Collects the entries of a full read, which `chosen` compares with the known ones. */
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

/** Returns the known entry if it is verified and has the same content. It stays verified with another signature. */
function withKnown(known: StoredKey | undefined, entry: KeyEntry | Tombstone): StoredKey {
  return known?.verified && haveEqualContent(known.entry, entry) ? known : { entry };
}

/** Returns an entry that is not deleted and has not expired. Its signature may not have been verified yet. */
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
