import { hash, timingSafeEqual } from "node:crypto";
import { entryKey, type KeyEntry, type Tombstone } from "@halyard/contracts";
import type { KeyKind } from "./api-key.ts";
import type { KeySignatures } from "./key-signatures.ts";

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

export type KeyAddress = { organizationId: string; keyId: string };

/** An entry and the result of its verification. */
export type StoredKey = {
  entry: KeyEntry | Tombstone;
  /** Undefined until the key is used; false if the signature of the entry is not valid. */
  verified?: VerifiedKey | false;
};
export type LiveKey = StoredKey & { entry: KeyEntry };

/** The secret is never beside what is handed out. */
type VerifiedKey = {
  key: DirectoryKey;
  /** The secret itself, from when it was proved right; in the memory of this process alone. */
  provedSecret: Buffer | undefined;
};

/** Verifies the signatures of entries, each at most once, and the secrets of requests. */
export type KeyVerification = {
  isGenuine(address: KeyAddress, entry: KeyEntry | Tombstone): boolean;
  /** Verifies the entry for the id under which it is stored, which may not be the one that it names. */
  bySignature(keyId: string, stored: LiveKey): VerifiedKey | undefined;
  /** The same for a request with this secret. */
  bySecret(keyId: string, stored: LiveKey, secret: string): VerifiedKey | undefined;
};

const sha256HexBytes = 64;
const secretTextBytes = 43;

export function createKeyVerification(signatures: KeySignatures): KeyVerification {
  // Used again for every request: a new buffer each time costs more than the hash. The texts are compared as bytes.
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
     * A hash costs more than the rest of an answer "nothing has changed" (bench `flags`, the rows of 304). It is
     * computed for the first request with a key; later requests are compared with the proved secret. Each request
     * brings the secret into this process's memory anyway, and the copy goes when the key is revoked or changed.
     */
    bySecret(keyId, stored, secret) {
      givenSecret.write(secret, "latin1");
      const known = stored.verified || undefined;
      if (known?.provedSecret !== undefined && timingSafeEqual(givenSecret, known.provedSecret))
        return known;
      givenSha256.write(hash("sha256", secret, "hex"), "latin1");
      storedSha256.write(stored.entry.secret_sha256, "latin1");
      if (!timingSafeEqual(givenSha256, storedSha256)) return undefined;
      // After the secret, so that only the holder of a key makes this process verify its signature.
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
    expiresAtMs: expiryOf(entry),
  };
}

/** Compares entries without their signatures. Of a deletion, only the version matters. */
export function haveEqualContent(one: KeyEntry | Tombstone, other: KeyEntry | Tombstone): boolean {
  if (one.version !== other.version) return false;
  if ("deleted" in one && "deleted" in other) return true;
  return one === other || contentOf(one) === contentOf(other);
}

function contentOf({ signature: _, ...content }: KeyEntry | Tombstone): string {
  return JSON.stringify(content);
}
