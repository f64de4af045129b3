import { hash, timingSafeEqual } from "node:crypto";
import {
  entryKey,
  type KeyEntry,
  type KeyKind,
  type KeyScope,
  type Tombstone,
} from "@halyard/contracts";
import type { KeySignatures } from "./key-signatures.ts";

export type DirectoryKey = {
  id: string;
  kind: KeyKind;
  organizationId: string;
  projectId: string;
  environmentId: string;
  userId: string;
  environmentOnly: boolean;
  /** The most that a server key may do. */
  scope: KeyScope;
  /** Milliseconds since 1970; undefined for a key that does not expire. */
  expiresAtMs: number | undefined;
};

type KeyAddress = { organizationId: string; keyId: string };

/** An entry and the result of its verification. */
export type StoredKey = {
  entry: KeyEntry | Tombstone;
  /** Undefined until the key is used; false if the signature of the entry is not valid. */
  verified?: VerifiedKey | false;
};
export type LiveKey = StoredKey & { entry: KeyEntry };

/** A verified key and, separately, its secret, which callers never receive. */
type VerifiedKey = {
  key: DirectoryKey;
  /** The secret after its first verification, only in the memory of this process. */
  provedSecret: Buffer | undefined;
};

/** Verifies the signatures of entries, each at most once, and the secrets of requests. */
export type KeyVerification = {
  isGenuine(address: KeyAddress, entry: KeyEntry | Tombstone): boolean;
  /** Verifies the signature of an entry with the id under which it is stored. A forged entry may name another id. */
  bySignature(keyId: string, stored: LiveKey): VerifiedKey | undefined;
  /** Verifies the secret of a request, and then the signature of the entry. */
  bySecret(keyId: string, stored: LiveKey, secret: string): VerifiedKey | undefined;
};

const sha256HexBytes = 64;
const secretTextBytes = 43;

export function createKeyVerification(signatures: KeySignatures): KeyVerification {
  // Every request reuses these buffers, because a new buffer costs more than the hash. Texts are compared as bytes.
  const givenSha256 = Buffer.alloc(sha256HexBytes);
  const storedSha256 = Buffer.alloc(sha256HexBytes);
  const givenSecret = Buffer.alloc(secretTextBytes);

  function isGenuine({ organizationId, keyId }: KeyAddress, entry: KeyEntry | Tombstone): boolean {
    return signatures.isGenuine(entryKey({ kind: "key", organizationId, keyId }), entry);
  }

  function bySignature(keyId: string, stored: LiveKey): VerifiedKey | undefined {
    if (stored.verified === undefined) {
      const { entry } = stored;
      const address = { organizationId: entry.organization_id, keyId };
      stored.verified = isGenuine(address, entry) && {
        key: keyOf(entry),
        provedSecret: undefined,
      };
    }
    return stored.verified || undefined;
  }

  return {
    isGenuine,
    bySignature,
    /**
     * A hash costs more than the rest of a response 304 (bench `flags`). It is computed only for the first request with
     * a key; later secrets are compared with the verified one. Each request brings the secret into the memory of this
     * process anyway, and the copy is removed when the key is revoked or changed.
     */
    bySecret(keyId, stored, secret) {
      givenSecret.write(secret, "latin1");
      const known = stored.verified || undefined;
      if (known?.provedSecret !== undefined && timingSafeEqual(givenSecret, known.provedSecret))
        return known;
      givenSha256.write(hash("sha256", secret, "hex"), "latin1");
      storedSha256.write(stored.entry.secret_sha256, "latin1");
      if (!timingSafeEqual(givenSha256, storedSha256)) return undefined;
      // The secret is compared first, so that only the holder of a key can cause the verification of its signature.
      const verified = bySignature(keyId, stored);
      if (verified !== undefined) verified.provedSecret = Buffer.from(givenSecret);
      return verified;
    },
  };
}

export function expiryOf({ expires_at }: KeyEntry): number | undefined {
  return expires_at === null ? undefined : Date.parse(expires_at);
}

function keyOf(entry: KeyEntry): DirectoryKey {
  return {
    id: entry.key_id,
    kind: entry.key_kind,
    organizationId: entry.organization_id,
    projectId: entry.project_id,
    environmentId: entry.environment_id,
    userId: entry.user_id,
    environmentOnly: entry.environment_only,
    scope: entry.scope ?? "write",
    expiresAtMs: expiryOf(entry),
  };
}

/** Compares entries without their signatures. Deletions are equal if their versions are. */
export function haveEqualContent(one: KeyEntry | Tombstone, other: KeyEntry | Tombstone): boolean {
  if (one.version !== other.version) return false;
  if ("deleted" in one && "deleted" in other) return true;
  return one === other || contentOf(one) === contentOf(other);
}

function contentOf({ signature: _, ...content }: KeyEntry | Tombstone): string {
  return JSON.stringify(content);
}
