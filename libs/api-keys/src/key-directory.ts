import { hash, timingSafeEqual } from "node:crypto";
import type { KeyEntry, Tombstone } from "@halyard/contracts";
import { hasShapeOf, idIn, type KeyKind, secretIn } from "./api-key.ts";

/**
 * Every API key that works, in memory. The directory is fed from the snapshot, so a request's key is
 * found, or found missing, without asking anybody. It remembers deletions for as long as the snapshot
 * does: a late older entry cannot bring a revoked key back.
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

/** Hashes and secrets are kept, and compared, as the bytes of their text; never beside what is handed out. */
type Secret = {
  sha256: Buffer;
  /** The secret itself, from when it was proved right; in the memory of this process alone. */
  proved: Buffer | undefined;
};
type Stored = { version: number; live?: { key: DirectoryKey; secret: Secret } };

const sha256HexBytes = 64;
const secretTextBytes = 43;

export type KeyDirectory = {
  /** Takes a whole snapshot's keys in place of what is known. */
  replace(entries: Iterable<readonly [keyId: string, entry: KeyEntry | Tombstone]>): void;
  /** Begins a replacement by a whole snapshot's keys. The present keys stay in use until `finish`. */
  beginReplacing(): { take(keyId: string, entry: KeyEntry | Tombstone): void; finish(): void };
  /** Takes one entry, unless a newer one is known. Answers whether anything changed. */
  apply(keyId: string, entry: KeyEntry | Tombstone): boolean;
  /**
   * The key that a text is, if it is known, not expired and its secret is right. Secrets are compared
   * in a time that does not depend on where they differ.
   */
  verify(text: string, nowMs: number): DirectoryKey | undefined;
  /** A key by its id, if it is known and not expired; for what was proved in another way. */
  find(keyId: string, nowMs: number): DirectoryKey | undefined;
  /** Whether a key is known and not expired; for what was opened with it earlier. */
  isLive(keyId: string, nowMs: number): boolean;
  /** The version of the entry that is held for a key; undefined while none is. */
  versionOf(keyId: string): number | undefined;
  readonly size: number;
};

export function createKeyDirectory(): KeyDirectory {
  let stored = new Map<string, Stored>();
  // Used again for every key that is verified: a new buffer each time costs more than the hash.
  const givenSha256 = Buffer.alloc(sha256HexBytes);
  const givenSecret = Buffer.alloc(secretTextBytes);

  function live(keyId: string, nowMs: number): Stored["live"] {
    const found = stored.get(keyId)?.live;
    const expiresAtMs = found?.key.expiresAtMs;
    return expiresAtMs !== undefined && expiresAtMs <= nowMs ? undefined : found;
  }

  /**
   * A hash costs more than all the rest of answering "nothing has changed", so it is made for the first
   * request with a key; who comes again with the same secret is compared with that. A secret is in this
   * process's memory with every request anyhow, and goes from here when the key is revoked or changed.
   */
  function isRight(secret: Secret, text: string): boolean {
    const given = secretIn(text);
    givenSecret.write(given, "latin1");
    if (secret.proved !== undefined && timingSafeEqual(givenSecret, secret.proved)) return true;
    givenSha256.write(hash("sha256", given, "hex"), "latin1");
    if (!timingSafeEqual(givenSha256, secret.sha256)) return false;
    secret.proved = Buffer.from(givenSecret);
    return true;
  }

  function beginReplacing() {
    const next = new Map<string, Stored>();
    return {
      take: (keyId: string, entry: KeyEntry | Tombstone) => void next.set(keyId, storedOf(entry)),
      finish() {
        stored = next;
      },
    };
  }

  return {
    replace(entries) {
      const { take, finish } = beginReplacing();
      for (const [keyId, entry] of entries) take(keyId, entry);
      finish();
    },
    beginReplacing,
    apply(keyId, entry) {
      const known = stored.get(keyId);
      if (known !== undefined && known.version >= entry.version) return false;
      stored.set(keyId, storedOf(entry));
      return true;
    },
    verify(text, nowMs) {
      const found = live(idIn(text), nowMs);
      if (found === undefined || !hasShapeOf(found.key.kind, text)) return undefined;
      return isRight(found.secret, text) ? found.key : undefined;
    },
    find: (keyId, nowMs) => live(keyId, nowMs)?.key,
    isLive: (keyId, nowMs) => live(keyId, nowMs) !== undefined,
    versionOf: (keyId) => stored.get(keyId)?.version,
    get size() {
      return stored.size;
    },
  };
}

function storedOf(entry: KeyEntry | Tombstone): Stored {
  const { version } = entry;
  if ("deleted" in entry) return { version };
  const key = {
    id: entry.key_id,
    kind: entry.key_kind,
    organizationId: entry.organization_id,
    projectId: entry.project_id,
    environmentId: entry.environment_id,
    userId: entry.user_id,
    environmentOnly: entry.environment_only,
    expiresAtMs: entry.expires_at === null ? undefined : Date.parse(entry.expires_at),
  };
  const sha256 = Buffer.from(entry.secret_sha256, "latin1");
  return { version, live: { key, secret: { sha256, proved: undefined } } };
}
