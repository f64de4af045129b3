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

/** Hashes are kept, and compared, as the bytes of their hexadecimal text. */
type Stored = { version: number; key: (DirectoryKey & { secretSha256: Buffer }) | undefined };

const sha256HexBytes = 64;

export type KeyDirectory = {
  /** Takes a whole snapshot's keys in place of what is known. */
  replace(entries: Iterable<readonly [keyId: string, entry: KeyEntry | Tombstone]>): void;
  /** Takes one entry, unless a newer one is known. Answers whether anything changed. */
  apply(keyId: string, entry: KeyEntry | Tombstone): boolean;
  /**
   * The key that a text is, if it is known, not expired and its secret is right. The comparison
   * takes as long for a wrong secret as for the right one.
   */
  verify(text: string, nowMs: number): DirectoryKey | undefined;
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

  function live(keyId: string, nowMs: number): Stored["key"] {
    const key = stored.get(keyId)?.key;
    if (key?.expiresAtMs !== undefined && key.expiresAtMs <= nowMs) return undefined;
    return key;
  }

  return {
    replace(entries) {
      stored = new Map();
      for (const [keyId, entry] of entries) stored.set(keyId, storedOf(entry));
    },
    apply(keyId, entry) {
      const known = stored.get(keyId);
      if (known !== undefined && known.version >= entry.version) return false;
      stored.set(keyId, storedOf(entry));
      return true;
    },
    verify(text, nowMs) {
      const key = live(idIn(text), nowMs);
      if (key === undefined || !hasShapeOf(key.kind, text)) return undefined;
      givenSha256.write(hash("sha256", secretIn(text), "hex"), "latin1");
      return timingSafeEqual(givenSha256, key.secretSha256) ? key : undefined;
    },
    isLive: (keyId, nowMs) => live(keyId, nowMs) !== undefined,
    versionOf: (keyId) => stored.get(keyId)?.version,
    get size() {
      return stored.size;
    },
  };
}

function storedOf(entry: KeyEntry | Tombstone): Stored {
  if ("deleted" in entry) return { version: entry.version, key: undefined };
  return {
    version: entry.version,
    key: {
      id: entry.key_id,
      kind: entry.key_kind,
      organizationId: entry.organization_id,
      projectId: entry.project_id,
      environmentId: entry.environment_id,
      userId: entry.user_id,
      environmentOnly: entry.environment_only,
      expiresAtMs: entry.expires_at === null ? undefined : Date.parse(entry.expires_at),
      secretSha256: Buffer.from(entry.secret_sha256, "latin1"),
    },
  };
}
