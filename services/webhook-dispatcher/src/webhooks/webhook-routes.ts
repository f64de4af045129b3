import { createHmac } from "node:crypto";
import { bearerToken, keyProblems } from "@halyard/api-keys";
import type { CreateWebhook } from "@halyard/contracts";
import * as contract from "@halyard/contracts";
import {
  type Answer,
  type App,
  answer,
  checkIfMatch,
  createProblem,
  etagOf,
  isProblem,
  type Problem,
  type RequestFacts,
  registerRoute,
} from "@halyard/http";
import { type AnswerOnce, rollBackOnProblem } from "@halyard/idempotency";
import type { AuthenticateMember, Caller } from "@halyard/people";
import type { Sql } from "@halyard/postgres";
import type { Logger } from "pino";
import type { SecretBox } from "../secrets/secret-box.ts";
import type { TargetRules } from "../targets/target.ts";
import { type AuditContext, decideCreate, decideUpdate, type Webhook } from "./webhook.ts";
import { presentSecret } from "./webhook-secrets.ts";
import {
  changeWebhook,
  deleteWebhook,
  findWebhook,
  insertWebhook,
  listWebhooks,
} from "./webhook-store.ts";
import { testResult, type WebhookTests } from "./webhook-tests.ts";

type WebhookRoutesOptions = {
  sql: Sql;
  secrets: SecretBox;
  rules: TargetRules;
  tests: WebhookTests;
  webhooksPerProject: number;
  newId: () => string;
  now: () => Date;
  answerOnce: AnswerOnce;
  authenticate: AuthenticateMember;
  logger: Logger;
};

/** Registers the routes of webhooks. Each requires a server key of the project. */
export function registerWebhookRoutes(app: App, options: WebhookRoutesOptions): void {
  registerReads(app, options);
  registerCreate(app, options);
  registerChanges(app, options);
  registerTest(app, options);
}

function registerReads(app: App, { sql, authenticate }: WebhookRoutesOptions): void {
  registerRoute(app, contract.listWebhooks, {
    authenticate: authenticate(contract.listWebhooks),
    handle: async ({ params }, key) => {
      const problem = checkMayUseWebhooks(key, params);
      if (problem !== undefined) return problem;
      const webhooks = await listWebhooks(sql, key.projectId);
      return answer.ok({ webhooks: webhooks.map(webhookResource) });
    },
  });

  registerRoute(app, contract.getWebhook, {
    authenticate: authenticate(contract.getWebhook),
    handle: async ({ params }, key) => {
      const scope = scopeOf(key, params);
      if (isProblem(scope)) return scope;
      const webhook = await findWebhook(sql, scope);
      return webhook === undefined ? noSuchWebhook : answerWith(webhook);
    },
  });
}

function registerCreate(app: App, options: WebhookRoutesOptions): void {
  const { sql, secrets, rules, newId, now, answerOnce, authenticate } = options;
  const auditOf = auditContext(options);
  const maxInProject = options.webhooksPerProject;

  registerRoute(app, contract.createWebhook, {
    authenticate: authenticate(contract.createWebhook),
    handle: async ({ params, body, request }, key) => {
      const problem = checkMayUseWebhooks(key, params);
      if (problem !== undefined) return problem;
      const { organizationId, projectId } = key;
      const { operationId } = contract.createWebhook;
      const asked = {
        caller: key.id,
        operationId,
        params: { projectId },
        body: withoutSecret(body, request),
        request,
      };
      return rollBackOnProblem(sql, (tx) =>
        answerOnce(tx, asked, async () => {
          const scope = { id: newId(), organizationId, projectId };
          const decided = decideCreate(scope, body, { rules, secrets, now: now() });
          const webhook = isProblem(decided)
            ? decided
            : await insertWebhook(tx, decided, { maxInProject, audit: auditOf(key) });
          if (isProblem(webhook)) return webhook;
          return answer.created(pathOf(webhook), webhookResource(webhook), {
            etag: etagOf(webhook),
          });
        }),
      );
    },
  });
}

function registerChanges(app: App, options: WebhookRoutesOptions): void {
  const { sql, secrets, rules, now, authenticate } = options;
  const auditOf = auditContext(options);

  registerRoute(app, contract.updateWebhook, {
    authenticate: authenticate(contract.updateWebhook),
    handle: async ({ params, body, request }, key) => {
      const scope = scopeOf(key, params);
      if (isProblem(scope)) return scope;
      const webhook = await changeWebhook(
        sql,
        scope,
        (present) =>
          checkIfMatch(request.ifMatch, present, pathOf(present)) ??
          decideUpdate(present, body, {
            ...{ rules, secrets, now: now() },
            presentSecret: (webhook) => presentSecret(options, webhook),
          }),
        auditOf(key),
      );
      if (webhook === undefined) return noSuchWebhook;
      return isProblem(webhook) ? webhook : answerWith(webhook);
    },
  });

  registerRoute(app, contract.deleteWebhook, {
    authenticate: authenticate(contract.deleteWebhook),
    handle: async ({ params, request }, key) => {
      const scope = scopeOf(key, params);
      if (isProblem(scope)) return scope;
      const permit = (webhook: Webhook) => checkIfMatch(request.ifMatch, webhook, pathOf(webhook));
      const deleted = await deleteWebhook(sql, scope, { permit, audit: auditOf(key) });
      if (deleted === undefined) return noSuchWebhook;
      return isProblem(deleted) ? deleted : answer.noContent();
    },
  });
}

function auditContext({ newId, now }: WebhookRoutesOptions) {
  return ({ userId, id, via }: Caller): AuditContext => ({
    author: via === "key" ? { userId, apiKeyId: id } : { userId, apiKeyId: null, via },
    newId,
    now: now(),
  });
}

function registerTest(app: App, { sql, tests, authenticate }: WebhookRoutesOptions): void {
  registerRoute(app, contract.testWebhook, {
    authenticate: authenticate(contract.testWebhook),
    handle: async ({ params }, key) => {
      const scope = scopeOf(key, params);
      if (isProblem(scope)) return scope;
      const webhook = await findWebhook(sql, scope);
      if (webhook === undefined) return noSuchWebhook;
      const result = await tests.run(webhook, key.userId);
      return isProblem(result) ? result : answer.ok(testResult(result));
    },
  });
}

function pathOf({ projectId, id }: Webhook): string {
  return `/api/v1/projects/${projectId}/webhooks/${id}`;
}

function answerWith(webhook: Webhook): Answer {
  return answer.ok(webhookResource(webhook), { etag: etagOf(webhook) });
}

/** Returns a webhook in the format of the API. It does not contain the secret, only whether there is one. */
function webhookResource(webhook: Webhook): contract.Webhook {
  return {
    id: webhook.id,
    project_id: webhook.projectId,
    name: webhook.name,
    url: webhook.url,
    events: webhook.events,
    enabled: webhook.enabled,
    trace_context: webhook.traceContext,
    has_secret: webhook.secret !== null,
    version: webhook.version,
    created_at: webhook.createdAt.toISOString(),
    updated_at: webhook.updatedAt.toISOString(),
  };
}

/**
 * Returns the body that identifies a repeated request, with an HMAC in place of the secret. A hash of this body is
 * stored. The database contains all its other fields, so with a plain hash, a reader of the database could guess
 * secrets. The HMAC needs the API key, which is not stored.
 */
function withoutSecret(body: CreateWebhook, { headers }: RequestFacts): CreateWebhook {
  if (typeof body.secret !== "string") return body;
  const apiKey = bearerToken(headers.authorization) ?? "";
  return { ...body, secret: createHmac("sha256", apiKey).update(body.secret).digest("hex") };
}

/** The project and the webhook of a path, after the key was checked. */
type WebhookScope = { projectId: string; webhookId: string };

const noSuchProject = createProblem("NOT_FOUND_001", "There is no such project.");
export const noSuchWebhook = createProblem(
  "NOT_FOUND_001",
  "There is no such webhook in this project.",
);

/** Webhooks belong to the whole project, so `environment_only` keys are rejected. Other projects are 404 first. */
function checkMayUseWebhooks(key: Caller, params: { projectId: string }): Problem | undefined {
  if (params.projectId.toLowerCase() !== key.projectId) return noSuchProject;
  return key.environmentOnly ? keyProblems.otherEnvironment : undefined;
}

/** Returns the project and the webhook of a path, with the ids in lower case, or the problem with the key. */
export function scopeOf(
  key: Caller,
  params: { projectId: string; webhookId: string },
): WebhookScope | Problem {
  const problem = checkMayUseWebhooks(key, params);
  if (problem !== undefined) return problem;
  return { projectId: key.projectId, webhookId: params.webhookId.toLowerCase() };
}
