import { completeAt, type EntrySigner, hasValidSignature } from "@halyard/api-keys";
import { type CompleteEntry, isSignedEntry, parseEntryKey } from "@halyard/contracts";

/**
 * Returns the payload of an entry as published, with a signature if it needs one. The leader signs at the time of
 * publication. So all entries of a snapshot, including those in rows of other replicas, have the signer that `complete`
 * names.
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

/** Returns whether this signer wrote the entry `complete`: it has a valid signature, or none if there is no signer. */
export function isOwnComplete(
  signer: EntrySigner | undefined,
  { complete, sequence }: { complete: CompleteEntry; sequence: number },
): boolean {
  if (signer === undefined) return complete.signed_by === undefined;
  const publicKeys = new Map([[signer.id, signer.publicKey]]);
  return hasValidSignature(completeAt(sequence), complete, publicKeys);
}
