import { createSecretKey, type KeyObject } from "node:crypto";

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
