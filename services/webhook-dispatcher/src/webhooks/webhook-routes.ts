import type { AuthenticateServerKey, DirectoryKey } from "@halyard/api-keys";
import * as contract from "@halyard/contracts";
import { type AnswerOnce, unlessRefused } from "@halyard/idempotency";
import type { Sql } from "@halyard/postgres";
import { type App, answer, isRefusal, registerRoute } from "@halyard/service";
import type { Logger } from "pino";
import type { SecretBox } from "../secrets/secret-box.ts";
import type { TargetRules } from "../targets/target.ts";
import { decideCreate, decideUpdate } from "./decide-webhook.ts";
import { createPresentSecret } from "./present-secret.ts";
import type { AuditContext } from "./webhook-audit.ts";
import { checkMayUseWebhooks, noSuchWebhook, placeOf } from "./webhook-place.ts";
import { webhookResource } from "./webhook-resource.ts";
import {
  changeWebhook,
  deleteWebhook,
  findWebhook,
  insertWebhook,
  listWebhooks,
} from "./webhook-store.ts";
import type { WebhookTests } from "./webhook-tests.ts";
import { withoutSecret } from "./without-secret.ts";

export type WebhookRoutesOptions = {
  sql: Sql;
  secrets: SecretBox;
  rules: TargetRules;
  tests: WebhookTests;
  newId: () => string;
  now: () => Date;
  answerOnce: AnswerOnce;
  authenticate: AuthenticateServerKey;
  logger: Logger;
};

/** The routes of webhooks themselves. Every one needs a server key of the project. */
export function registerWebhookRoutes(app: App, options: WebhookRoutesOptions): void {
  registerReads(app, options);
  registerCreate(app, options);
  registerChanges(app, options);
  registerTest(app, options);
}

function registerReads(app: App, { sql, authenticate }: WebhookRoutesOptions): void {
  registerRoute(app, contract.listWebhooks, {
    authenticate,
    handle: async ({ params }, key) => {
      const refusal = checkMayUseWebhooks(key, params);
      if (refusal !== undefined) return refusal;
      const webhooks = await listWebhooks(sql, key.projectId);
      return answer.ok({ webhooks: webhooks.map(webhookResource) });
    },
  });

  registerRoute(app, contract.getWebhook, {
    authenticate,
    handle: async ({ params }, key) => {
      const place = placeOf(key, params);
      if (isRefusal(place)) return place;
      const webhook = await findWebhook(sql, place);
      return webhook === undefined ? noSuchWebhook : answer.ok(webhookResource(webhook));
    },
  });
}

function registerCreate(app: App, options: WebhookRoutesOptions): void {
  const { sql, secrets, rules, newId, now, answerOnce, authenticate } = options;
  const auditOf = auditContext(options);

  registerRoute(app, contract.createWebhook, {
    authenticate,
    handle: async ({ params, body, request }, key) => {
      const refusal = checkMayUseWebhooks(key, params);
      if (refusal !== undefined) return refusal;
      const { organizationId, projectId } = key;
      const { operationId } = contract.createWebhook;
      const asked = {
        caller: key.id,
        operationId,
        params: { projectId },
        body: withoutSecret(body, request),
        request,
      };
      return unlessRefused(sql, (tx) =>
        answerOnce(tx, asked, async () => {
          const place = { id: newId(), organizationId, projectId };
          const decided = decideCreate(place, body, { rules, secrets, now: now() });
          const webhook = isRefusal(decided)
            ? decided
            : await insertWebhook(tx, decided, auditOf(key));
          if (isRefusal(webhook)) return webhook;
          const location = `/api/v1/projects/${projectId}/webhooks/${webhook.id}`;
          return answer.created(location, webhookResource(webhook));
        }),
      );
    },
  });
}

function registerChanges(app: App, options: WebhookRoutesOptions): void {
  const { sql, secrets, rules, now, authenticate, logger } = options;
  const presentSecret = createPresentSecret(secrets, logger);
  const auditOf = auditContext(options);

  registerRoute(app, contract.updateWebhook, {
    authenticate,
    handle: async ({ params, body }, key) => {
      const place = placeOf(key, params);
      if (isRefusal(place)) return place;
      const webhook = await changeWebhook(
        sql,
        place,
        (present) => decideUpdate(present, body, { rules, secrets, now: now(), presentSecret }),
        auditOf(key),
      );
      if (webhook === undefined) return noSuchWebhook;
      return isRefusal(webhook) ? webhook : answer.ok(webhookResource(webhook));
    },
  });

  registerRoute(app, contract.deleteWebhook, {
    authenticate,
    handle: async ({ params }, key) => {
      const place = placeOf(key, params);
      if (isRefusal(place)) return place;
      const deleted = await deleteWebhook(sql, place, auditOf(key));
      return deleted ? answer.noContent() : noSuchWebhook;
    },
  });
}

function auditContext({ newId, now }: WebhookRoutesOptions) {
  return (key: DirectoryKey): AuditContext => ({
    author: { userId: key.userId, apiKeyId: key.id },
    newId,
    now: now(),
  });
}

function registerTest(app: App, { sql, tests, authenticate }: WebhookRoutesOptions): void {
  registerRoute(app, contract.testWebhook, {
    authenticate,
    handle: async ({ params }, key) => {
      const place = placeOf(key, params);
      if (isRefusal(place)) return place;
      const webhook = await findWebhook(sql, place);
      if (webhook === undefined) return noSuchWebhook;
      const result = await tests.run(webhook, key.userId);
      if (isRefusal(result)) return result;
      const status = result.kind === "answered" ? result.status : 0;
      return answer.ok({
        success: status >= 200 && status < 300,
        status_code: status,
        response_time_ms: Math.round(result.durationMs),
      });
    },
  });
}
