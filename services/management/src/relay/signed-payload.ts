import { completeAt, type EntrySigner, hasValidSignature } from "@halyard/api-keys";
import { type CompleteEntry, isSignedEntry, parseEntryKey } from "@halyard/contracts";

/**
 * Returns the payload of an entry as it is published, with a signature where it needs one. The leader signs when it
 * publishes, so that all entries of a snapshot have the signer that `complete` names, also entries in rows of
 * other replicas.
 */
export async function signedPayload(
  signer: EntrySigner | undefined,
  entryKey: string,
  payload: string,
): Promise<string> {
  const address = parseEntryKey(entryKey);
  if (signer === undefined || address === undefined || address.kind === "flag") return payload;
  const isSigned = isSignedEntry({ address, value: JSON.parse(payload) });
  return isSigned ? signer.sign(entryKey, payload) : payload;
}

/** Returns whether the entry `complete` is as this signer left it: with its signature, or without any. */
export function isOwnComplete(
  signer: EntrySigner | undefined,
  { complete, sequence }: { complete: CompleteEntry; sequence: number },
): boolean {
  if (signer === undefined) return complete.signed_by === undefined;
  const publicKeys = new Map([[signer.id, signer.publicKey]]);
  return hasValidSignature(completeAt(sequence), complete, publicKeys);
}
