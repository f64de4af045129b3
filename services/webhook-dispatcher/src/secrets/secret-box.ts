import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject } from "node:crypto";

/** A key that encrypts customers' secrets. Logs do not print the bytes of a `KeyObject`. */
type SecretKey = { id: string; key: KeyObject };

/** AES-256. */
const keyBytes = 32;
const idPattern = /^[\w-]{1,64}$/;
/** Exactly 32 bytes in base64. The decoder of Node.js would skip invalid characters. */
const base64Pattern = /^[A-Za-z0-9+/]{43}=$/;

/**
 * Parses `id:base64[,id:base64…]`, the keys for customers' secrets. The first key encrypts. To replace a key, insert
 * the new one before it, and remove the old one when no secret is encrypted with it any more.
 *
 * Returns undefined if the text is invalid. It gives no reason, because a reason could reveal a part of a key.
 */
export function readSecretKeys(text: string): [SecretKey, ...SecretKey[]] | undefined {
  const [first, ...others] = text.split(",").map(readSecretKey);
  const keys = others.filter((key) => key !== undefined);
  if (first === undefined || keys.length < others.length) return undefined;
  const ids = new Set([first, ...keys].map(({ id }) => id));
  return ids.size === 1 + keys.length ? [first, ...keys] : undefined;
}

function readSecretKey(text: string): SecretKey | undefined {
  const [id = "", base64 = "", ...more] = text.trim().split(":");
  if (more.length > 0 || !idPattern.test(id) || !base64Pattern.test(base64)) return undefined;
  const bytes = Buffer.from(base64, "base64");
  return bytes.length === keyBytes ? { id, key: createSecretKey(bytes) } : undefined;
}

/**
 * A customer's signing secret, encrypted with AES-256-GCM. The webhook's id is additional authenticated data, so a
 * secret that is copied to the row of another webhook cannot be decrypted. The id of the key is stored with the secret:
 * the first key of the configuration encrypts, and all keys decrypt.
 *
 * `bytes` contains the nonce, the authentication tag and the ciphertext, in this order. Nonces are random. With 96-bit
 * nonces, one key may encrypt 2^32 secrets (NIST SP 800-38D, 8.3), far more than there are webhooks.
 */
export type SealedSecret = { bytes: Buffer; keyId: string };

export type SecretBox = {
  seal(webhookId: string, text: string): SealedSecret;
  /** Throws an `UnknownSecretKeyError` or a `BrokenSecretError`. */
  open(webhookId: string, sealed: SealedSecret): string;
  currentKeyId: string;
};

/** A secret is encrypted with a key that is not configured. */
export class UnknownSecretKeyError extends Error {
  override readonly name = "UnknownSecretKeyError";
  readonly hasSafeMessage = true;

  constructor(webhookId: string, keyId: string) {
    super(`The secret of webhook ${webhookId} needs the key ${keyId}, which is not configured.`);
  }
}

/** Decryption failed: the stored bytes were not encrypted for this webhook with this key. */
export class BrokenSecretError extends Error {
  override readonly name = "BrokenSecretError";
  readonly hasSafeMessage = true;

  constructor(webhookId: string, keyId: string, cause?: unknown) {
    super(`Cannot decrypt the secret of webhook ${webhookId} with the key ${keyId}.`, { cause });
  }
}

export const isUnreadable = (error: unknown): boolean =>
  error instanceof UnknownSecretKeyError || error instanceof BrokenSecretError;

const algorithm = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;

export function createSecretBox(options: {
  keys: readonly [SecretKey, ...SecretKey[]];
  randomBytes: (count: number) => Buffer;
}): SecretBox {
  const [current] = options.keys;
  const keysById = new Map(options.keys.map((key) => [key.id, key]));
  return {
    currentKeyId: current.id,
    seal(webhookId, text) {
      const nonce = options.randomBytes(nonceBytes);
      const cipher = createCipheriv(algorithm, current.key, nonce, { authTagLength: tagBytes });
      cipher.setAAD(additionalData(webhookId));
      const ciphertext = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
      return { bytes: Buffer.concat([nonce, cipher.getAuthTag(), ciphertext]), keyId: current.id };
    },
    open(webhookId, { bytes, keyId }) {
      const key = keysById.get(keyId);
      if (key === undefined) throw new UnknownSecretKeyError(webhookId, keyId);
      if (bytes.length < nonceBytes + tagBytes) throw new BrokenSecretError(webhookId, keyId);
      const nonce = bytes.subarray(0, nonceBytes);
      const decipher = createDecipheriv(algorithm, key.key, nonce, { authTagLength: tagBytes });
      decipher.setAAD(additionalData(webhookId));
      decipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes));
      const begun = decipher.update(bytes.subarray(nonceBytes + tagBytes));
      try {
        return Buffer.concat([begun, decipher.final()]).toString("utf8");
      } catch (cause) {
        throw new BrokenSecretError(webhookId, keyId, cause);
      }
    },
  };
}

/** Returns the additional authenticated data. It contains the purpose, so no other ciphertext passes as a secret. */
const additionalData = (webhookId: string): Buffer => Buffer.from(`webhook secret ${webhookId}`);
