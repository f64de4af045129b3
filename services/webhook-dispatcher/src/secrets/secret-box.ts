import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject } from "node:crypto";

/** A key for customers' secrets. A `KeyObject`, which no log prints the bytes of. */
export type SecretKey = { id: string; key: KeyObject };

/** AES-256. */
const keyBytes = 32;
const idPattern = /^[\w-]{1,64}$/;
/** 32 bytes in base64, and nothing that a lenient decoder would skip. */
const base64Pattern = /^[A-Za-z0-9+/]{43}=$/;

/**
 * Reads `id:base64[,id:base64…]`: the keys for customers' secrets, of which the first one seals. A key is
 * replaced by putting another one before it; it can go when nothing is sealed with it any more.
 * Undefined when the text is not of this form; why is not said, as it would repeat a piece of a key.
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
 * Customers' signing secrets as they are kept: encrypted with AES-256-GCM. The webhook's id goes in as
 * additional data, so that a secret that is moved to another webhook's row does not open there. The
 * key's id is kept beside it: the first key of the configuration seals, every one of them opens.
 *
 * `bytes` are the nonce, the authentication tag and the ciphertext, in this order. A nonce is random:
 * at 96 bits one key may seal 2^32 secrets (NIST SP 800-38D, 8.3), which nobody's webhooks come near.
 */
export type SealedSecret = { bytes: Buffer; keyId: string };

export type SecretBox = {
  seal(webhookId: string, text: string): SealedSecret;
  /** Throws an `UnknownSecretKeyError` or a `BrokenSecretError`. */
  open(webhookId: string, sealed: SealedSecret): string;
  currentKeyId: string;
};

/** A secret was sealed with a key that the configuration does not have (any more). */
export class UnknownSecretKeyError extends Error {
  override readonly name = "UnknownSecretKeyError";
  readonly hasSafeMessage = true;

  constructor(webhookId: string, keyId: string) {
    super(`The secret of webhook ${webhookId} needs the key ${keyId}, which is not configured.`);
  }
}

/** What is kept is not what was sealed for this webhook with the key of this id. */
export class BrokenSecretError extends Error {
  override readonly name = "BrokenSecretError";
  readonly hasSafeMessage = true;

  constructor(webhookId: string, keyId: string, cause?: unknown) {
    super(`The secret of webhook ${webhookId} does not open with the key ${keyId}.`, { cause });
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

/** Says what it is the secret of, so that nothing else that is sealed with the key opens as one. */
const additionalData = (webhookId: string): Buffer => Buffer.from(`webhook secret ${webhookId}`);
