import type { KeyObject } from "node:crypto";
import type { CompleteEntry } from "@halyard/contracts";
import { createSigner, hasSignature, type PublicKeys, signerIn } from "@halyard/jetstream";

/**
 * Signatures of the entries of API keys in the snapshot. The signed text consists of a purpose, the key of the
 * entry in the bucket, and the JSON of all other members in their order. An entry therefore cannot be copied to another
 * key, and a reader also verifies members that a later release adds.
 *
 * The member `signature` is the last one.
 */
export type EntrySigner = {
  /** Identifies the public key. */
  id: string;
  publicKey: KeyObject;
  /** Returns the payload of an entry with its signature. */
  sign(entryKey: string, payload: string): Promise<string>;
};

const purpose = "halyard api key entry 1";
const signatureMember = /,"signature":"[0-9a-f]{16}\.[A-Za-z0-9_-]{86}"\}$/;

export function createEntrySigner(privateKey: KeyObject): EntrySigner {
  const { id, publicKey, sign } = createSigner(privateKey);
  return {
    id,
    publicKey,
    async sign(entryKey, payload) {
      const signature = await sign(signedBytes(entryKey, payload));
      return `${payload.slice(0, -1)},"signature":"${signature}"}`;
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

/** Returns whether the entry has a valid signature by one of the public keys. */
export function hasValidSignature(
  entryKey: string,
  entry: { signature?: string | undefined },
  publicKeys: PublicKeys,
): boolean {
  const { signature = "", ...content } = entry;
  return hasSignature(() => signedBytes(entryKey, JSON.stringify(content)), signature, publicKeys);
}

/** Returns the payload of an entry without its signature. */
export function withoutSignature(payload: string): string {
  const found = signatureMember.exec(payload);
  return found === null ? payload : `${payload.slice(0, found.index)}}`;
}

export function signerOf(entry: { signature?: string | undefined }): string | undefined {
  return entry.signature === undefined ? undefined : signerIn(entry.signature);
}

function signedBytes(entryKey: string, content: string): Buffer {
  return Buffer.from(`${purpose}\n${entryKey}\n${content}`);
}
