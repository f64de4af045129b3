import type { EntrySigner } from "@halyard/api-keys";
import { parseEntryKey } from "@halyard/contracts";

/**
 * Returns the payload of an entry as it is published: entries of API keys are signed. The leader signs when it
 * publishes, so that all entries of a snapshot have the signer that `complete` names, also entries in rows of
 * other replicas.
 */
export async function signedPayload(
  signer: EntrySigner | undefined,
  entryKey: string,
  payload: string,
): Promise<string> {
  const isKey = parseEntryKey(entryKey)?.kind === "key";
  return signer !== undefined && isKey ? signer.sign(entryKey, payload) : payload;
}
