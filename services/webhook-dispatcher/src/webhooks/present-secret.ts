import type { Logger } from "pino";
import { isUnreadable, type SecretBox } from "../secrets/secret-box.ts";
import type { Webhook } from "./webhook.ts";

/**
 * Opens the secret that a webhook has, for comparison with another. One that cannot be opened, because
 * its key is not configured any more, must not keep people from giving the webhook a new one.
 */
export function createPresentSecret(
  secrets: SecretBox,
  logger: Logger,
): (webhook: Webhook) => string | undefined {
  return ({ id, secret }) => {
    if (secret === null) return undefined;
    try {
      return secrets.open(id, secret);
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      logger.error({ err: error, webhook_id: id }, "a webhook's secret cannot be read");
      return undefined;
    }
  };
}
