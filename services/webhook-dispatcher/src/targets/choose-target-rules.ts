import type { Logger } from "pino";
import type { TargetRules } from "./target.ts";

/** Where webhooks may go, by how this process is run. What is meant for development is told in production. */
export function chooseTargetRules(options: {
  isProduction: boolean;
  allowPrivate: boolean;
  logger: Logger;
}): TargetRules {
  const { isProduction, allowPrivate, logger } = options;
  if (isProduction && allowPrivate)
    logger.warn(
      "WEBHOOK_ALLOW_PRIVATE_TARGETS is on in production: whoever has a server key can reach what this process reaches, over https; unless all customers are your own people, set it to false",
    );
  return { httpsOnly: isProduction, allowPrivate };
}
