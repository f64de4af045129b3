import { randomBytes } from "node:crypto";
import { type App, createApp } from "@halyard/http";
import { createAnswerOnce } from "@halyard/idempotency";
import type { AuthenticateMember } from "@halyard/people";
import { isOutage, type Sql } from "@halyard/postgres";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import { registerDeliveryRoutes } from "./deliveries/delivery-routes.ts";
import type { SecretBox } from "./secrets/secret-box.ts";
import type { TargetRules } from "./targets/target.ts";
import { registerWebhookRoutes } from "./webhooks/webhook-routes.ts";
import type { WebhookTests } from "./webhooks/webhook-tests.ts";

/** Maximum size of a request body. A webhook is a name, a URL, event names and a secret. */
const bodyLimitBytes = 1024 * 1024;

/** Creates the HTTP application with all routes of the dispatcher. */
export function createWebhookApp(options: {
  sql: Sql;
  secrets: SecretBox;
  rules: TargetRules;
  tests: WebhookTests;
  webhooksPerProject: number;
  /** Called when an attempt is due immediately. */
  onDue: () => void;
  authenticate: AuthenticateMember;
  newId: () => string;
  now: () => Date;
  trustedProxies: readonly string[];
  checkAnswers: boolean;
  metrics: Registry;
  logger: Logger;
}): App {
  const app = createApp({ ...options, bodyLimitBytes, isOutage });
  const routes = { ...options, answerOnce: createAnswerOnce(randomBytes) };
  registerWebhookRoutes(app, routes);
  registerDeliveryRoutes(app, routes);
  return app;
}
