import type { Logger } from "pino";
import { isUnreadable, type SecretBox } from "../secrets/secret-box.ts";
import type { SigningSecrets } from "../signing/sign.ts";
import type { Webhook } from "./webhook.ts";

/** The secrets to sign with at a time. Throws what opening the current one throws. */
export function signingSecrets(
  secrets: SecretBox,
  webhook: Pick<Webhook, "id" | "secret" | "previousSecret">,
  at: Date,
  logger: Logger,
): SigningSecrets {
  const { id, secret, previousSecret } = webhook;
  const current = secret === null ? null : secrets.open(id, secret);
  if (previousSecret === null || previousSecret.endsAt <= at) return { current, previous: null };
  try {
    return { current, previous: secrets.open(id, previousSecret) };
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    // Receivers that have the current secret already get their deliveries all the same.
    logger.error({ err: error, webhook_id: id }, "a webhook's previous secret cannot be read");
    return { current, previous: null };
  }
}
