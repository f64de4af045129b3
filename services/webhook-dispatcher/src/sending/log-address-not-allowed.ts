import type { Logger } from "pino";
import type { SendResult } from "./send.ts";

/** Logs that a target's name leads to a private address, because the customer's result does not reveal it. */
export function logAddressNotAllowed(result: SendResult, webhookId: string, logger: Logger): void {
  if (result.kind === "failed" && result.addressNotAllowed)
    logger.info(
      { webhook_id: webhookId },
      "the name of a webhook's target leads to an address that is not allowed",
    );
}
