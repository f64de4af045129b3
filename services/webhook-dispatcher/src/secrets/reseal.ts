import type { SealedSecret, SecretBox } from "./secret-box.ts";

/**
 * The secret under the key that seals at present; undefined when it is already. Throws what opening
 * throws.
 */
export function reseal(
  box: SecretBox,
  webhookId: string,
  sealed: SealedSecret,
): SealedSecret | undefined {
  if (sealed.keyId === box.currentKeyId) return undefined;
  return box.seal(webhookId, box.open(webhookId, sealed));
}
