import { isEntryOf, type KeyEntry, type SnapshotEntry, type Tombstone } from "@halyard/contracts";
import { hasShapeOf, idIn, type KeyKind, secretIn } from "./api-key.ts";
import type { KeySignatures } from "./key-signatures.ts";
import {
  createKeyVerification,
  expiryOf,
  haveEqualContent,
  type KeyAddress,
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
export type DirectoryKey = {
  id: string;
  kind: KeyKind;
  organizationId: string;
  projectId: string;
  environmentId: string;
  userId: string;
  environmentOnly: boolean;
  /** Milliseconds since 1970; undefined for a key that does not expire. */
  expiresAtMs: number | undefined;
};

export type KeyDirectory = {
  /** Replaces all keys and deleted environments. The caller has verified the changed entries. */
  replace(
    entries: Iterable<readonly [keyId: string, entry: KeyEntry | Tombstone]>,
    deletedEnvironments: Iterable<string>,
  ): void;
  /**
   * Begins a replacement by a whole snapshot's keys. The present keys stay in use until `finish`. A known entry
   * stays if the other one is changed and its signature is not valid.
   */
  beginReplacing(): KeyReader & { finish(): void };
  /**
   * Takes a changed entry, unless a newer one is known or its signature is not valid. Returns whether it was
   * taken.
   */
  apply(address: KeyAddress, entry: KeyEntry | Tombstone): boolean;
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

/** The part of a directory, or of its replacement, that takes entries of the snapshot. */
export type KeyReader = {
  apply(address: KeyAddress, entry: KeyEntry | Tombstone): unknown;
  endEnvironment(environmentId: string): void;
};

/** Passes an entry of the snapshot on, if it is about API keys or deletes an environment. */
export function passToKeys(keys: KeyReader, entry: SnapshotEntry): void {
  if (isEntryOf("key", entry)) keys.apply(entry.address, entry.value);
  else if (isEntryOf("environment", entry) && "deleted" in entry.value)
    keys.endEnvironment(entry.address.environmentId);
}

export function createKeyDirectory(signatures: KeySignatures): KeyDirectory {
  let stored = new Map<string, StoredKey>();
  let ended = new Set<string>();
  const verification = createKeyVerification(signatures);

  /** The live entry of a key that has not expired; its signature may not have been verified yet. */
  function live(keyId: string, nowMs: number): LiveKey | undefined {
    const found = stored.get(keyId);
    if (found === undefined || found.verified === false || "deleted" in found.entry)
      return undefined;
    if (ended.has(found.entry.environment_id)) return undefined;
    const expiresAtMs = found.verified ? found.verified.key.expiresAtMs : expiryOf(found.entry);
    if (expiresAtMs !== undefined && expiresAtMs <= nowMs) return undefined;
    return found as LiveKey;
  }

  /** A verified entry stays verified under another signature of the same content. */
  const withKnown = (known: StoredKey | undefined, entry: KeyEntry | Tombstone): StoredKey =>
    known?.verified && haveEqualContent(known.entry, entry) ? known : { entry };

  function chosen(address: KeyAddress, entry: KeyEntry | Tombstone): StoredKey {
    const known = stored.get(address.keyId);
    const isChanged = known !== undefined && !haveEqualContent(known.entry, entry);
    return isChanged && !verification.isGenuine(address, entry) ? known : withKnown(known, entry);
  }

  const isNewer = (keyId: string, { version }: KeyEntry | Tombstone) =>
    version > (stored.get(keyId)?.entry.version ?? 0);

  function put(keyId: string, entry: KeyEntry | Tombstone): boolean {
    if (!isNewer(keyId, entry)) return false;
    stored.set(keyId, { entry });
    return true;
  }

  return {
    replace(entries, deletedEnvironments) {
      const known = stored;
      stored = new Map();
      ended = new Set(deletedEnvironments);
      for (const [keyId, entry] of entries) stored.set(keyId, withKnown(known.get(keyId), entry));
    },
    beginReplacing() {
      const next = new Map<string, StoredKey>();
      const nextEnded = new Set<string>();
      return {
        apply(address, entry) {
          const other = next.get(address.keyId);
          const found = chosen(address, entry);
          if (other !== undefined && other.entry.version >= found.entry.version) return;
          next.set(address.keyId, found);
        },
        endEnvironment: (environmentId) => void nextEnded.add(environmentId),
        finish() {
          stored = next;
          ended = nextEnded;
        },
      };
    },
    apply: (address, entry) =>
      isNewer(address.keyId, entry) &&
      verification.isGenuine(address, entry) &&
      put(address.keyId, entry),
    endEnvironment: (environmentId) => void ended.add(environmentId),
    hasEnded: (environmentId) => ended.has(environmentId),
    put,
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
    versionOf: (keyId) => stored.get(keyId)?.entry.version,
    isGenuineComplete: signatures.isGenuineComplete,
    isGenuineDeletion: signatures.isGenuine,
    get size() {
      return stored.size;
    },
  };
}
