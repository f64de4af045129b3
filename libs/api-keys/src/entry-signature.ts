import { createHash, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import { promisify } from "node:util";
import type { CompleteEntry } from "@halyard/contracts";

/**
 * Ed25519 signatures of the entries of API keys in the snapshot. The signed text consists of a purpose, the key of the
 * entry in the bucket, and the JSON of all other members in their order. An entry therefore cannot be copied to another
 * key, and a reader also verifies members that a later release adds.
 *
 * The member `signature` is the last one: `<signer>.<signature in base64url>`. The signer is the beginning of the
 * SHA-256 of the public key.
 */
export type EntrySigner = {
  /** Identifies the public key. */
  id: string;
  publicKey: KeyObject;
  /** Returns the payload of an entry with its signature. */
  sign(entryKey: string, payload: string): Promise<string>;
};

const purpose = "halyard api key entry 1";
const signerIdLength = 16;
const signatureShape = /^([0-9a-f]{16})\.([A-Za-z0-9_-]{86})$/;
const signatureMember = /,"signature":"[0-9a-f]{16}\.[A-Za-z0-9_-]{86}"\}$/;

const signOnThreadPool = promisify(sign);

export function createEntrySigner(privateKey: KeyObject): EntrySigner {
  const publicKey = createPublicKey(privateKey);
  const id = signerIdOf(publicKey);
  return {
    id,
    publicKey,
    async sign(entryKey, payload) {
      const bytes = await signOnThreadPool(null, signedBytes(entryKey, payload), privateKey);
      return `${payload.slice(0, -1)},"signature":"${id}.${bytes.toString("base64url")}"}`;
    },
  };
}

/**
 * Returns the payload of the entry `complete` with its signature. The signature is valid only at this sequence of the
 * stream. Otherwise a copy of an older entry would make readers accept a former epoch.
 */
export function signComplete(
  signer: EntrySigner,
  { signature: _, ...entry }: CompleteEntry,
  sequence: number,
): Promise<string> {
  return signer.sign(completeAt(sequence), JSON.stringify({ ...entry, signed_by: signer.id }));
}

/** Returns the replacement of the key in the signed text of the entry `complete`. */
export const completeAt = (sequence: number): string => `complete ${sequence}`;

/** Returns whether the entry has a valid signature by one of the public keys, which are given by signer id. */
export function hasValidSignature(
  entryKey: string,
  entry: { signature?: string | undefined },
  publicKeys: ReadonlyMap<string, KeyObject>,
): boolean {
  const { signature = "", ...content } = entry;
  const [, signer = "", bytes = ""] = signatureShape.exec(signature) ?? [];
  const publicKey = publicKeys.get(signer);
  if (publicKey === undefined) return false;
  const signed = signedBytes(entryKey, JSON.stringify(content));
  return verify(null, signed, publicKey, Buffer.from(bytes, "base64url"));
}

/** Returns the payload of an entry without its signature. */
export function withoutSignature(payload: string): string {
  const found = signatureMember.exec(payload);
  return found === null ? payload : `${payload.slice(0, found.index)}}`;
}

export function signerOf(entry: { signature?: string | undefined }): string | undefined {
  return entry.signature?.slice(0, signerIdLength);
}

export function signerIdOf(publicKey: KeyObject): string {
  const der = publicKey.export({ format: "der", type: "spki" });
  return createHash("sha256").update(der).digest("hex").slice(0, signerIdLength);
}

function signedBytes(entryKey: string, content: string): Buffer {
  return Buffer.from(`${purpose}\n${entryKey}\n${content}`);
}
