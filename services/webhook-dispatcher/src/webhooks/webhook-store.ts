import { writeAudit } from "@halyard/audit-outbox";
import { createProblem, isProblem, type Problem } from "@halyard/http";
import { fragment, type Sql, type Transaction } from "@halyard/postgres";
import {
  cancelAll,
  cancelledAtOnce,
  cancelledInARequest,
  cancelSome,
} from "./cancel-deliveries.ts";
import { type AuditContext, type Webhook, webhookAudit } from "./webhook.ts";

/**
 * Webhooks in PostgreSQL. A transaction that disables or deletes a webhook locks its row before the deliveries are
 * cancelled. A transaction that creates deliveries also locks the row. Therefore no delivery is missed.
 */

type Scope = { projectId: string; webhookId: string };

/** Inserts a webhook. `maxInProject` bounds the number of deliveries per event. */
export async function insertWebhook(
  tx: Transaction,
  webhook: Webhook,
  { maxInProject, audit }: { maxInProject: number; audit: AuditContext },
): Promise<Webhook | Problem> {
  await lockNames(tx, webhook.projectId);
  const problem = (await checkCount(tx, webhook, maxInProject)) ?? (await checkName(tx, webhook));
  if (problem !== undefined) return problem;
  const { secret, previousSecret } = webhook;
  await tx`
    insert into webhooks (id, organization_id, project_id, name, url, events, enabled,
      trace_context, secret, secret_key_id, previous_secret, previous_secret_key_id, previous_secret_ends_at, created_at,
      updated_at)
    values (${webhook.id}, ${webhook.organizationId}, ${webhook.projectId}, ${webhook.name},
      ${webhook.url}, ${webhook.events}::text[], ${webhook.enabled}, ${webhook.traceContext},
      ${secret?.bytes ?? null}, ${secret?.keyId ?? null}, ${previousSecret?.bytes ?? null}, ${previousSecret?.keyId ?? null},
      ${previousSecret?.endsAt ?? null}, ${webhook.createdAt}, ${webhook.updatedAt})`;
  await tx`
    insert into lanes (webhook_id, organization_id)
    values (${webhook.id}, ${webhook.organizationId})`;
  await writeAudit(tx, webhookAudit(null, webhook, audit));
  return webhook;
}

/**
 * Replaces a webhook with the result of `decide`. Returns undefined if the webhook does not exist. If the webhook is
 * disabled, its open deliveries are cancelled. The rest of a large backlog is cancelled in the background.
 */
export async function changeWebhook(
  sql: Sql,
  scope: Scope,
  decide: (webhook: Webhook) => Webhook | Problem,
  audit: AuditContext,
): Promise<Webhook | Problem | undefined> {
  await clearBeforeSwitchingOn(sql, scope, decide);
  const webhook = await replaceWebhook(sql, scope, decide, audit);
  // Also if it was disabled before, because the request may repeat one that did not finish.
  if (webhook !== undefined && !isProblem(webhook) && !webhook.enabled)
    await cancelSome(sql, webhook.id, cancelledInARequest);
  return webhook;
}

/**
 * Cancels the remaining deliveries of a webhook that is about to be enabled. It runs outside the transaction that locks
 * the webhook. Otherwise events of the project would wait for that lock and delay those of other projects.
 */
async function clearBeforeSwitchingOn(
  sql: Sql,
  scope: Scope,
  decide: (webhook: Webhook) => Webhook | Problem,
): Promise<void> {
  const webhook = await findWebhook(sql, scope);
  if (webhook === undefined || webhook.enabled) return;
  const next = decide(webhook);
  if (!isProblem(next) && next.enabled) await cancelAll(sql, webhook.id);
}

async function replaceWebhook(
  sql: Sql,
  scope: Scope,
  decide: (webhook: Webhook) => Webhook | Problem,
  audit: AuditContext,
): Promise<Webhook | Problem | undefined> {
  return sql.begin(async (tx) => {
    await lockNames(tx, scope.projectId);
    const webhook = await lockWebhook(tx, scope);
    if (webhook === undefined) return undefined;
    const next = decide(webhook);
    if (isProblem(next) || next === webhook) return next;
    const problem = next.name === webhook.name ? undefined : await checkName(tx, next);
    if (problem !== undefined) return problem;
    // Deliveries from before the webhook was disabled must not be sent. Usually there are none left to cancel.
    if (!webhook.enabled && next.enabled) await cancelAll(tx, next.id);
    const version = await updateWebhook(tx, next);
    await writeAudit(tx, webhookAudit(webhook, next, audit));
    if (webhook.enabled && !next.enabled) await cancelSome(tx, next.id, cancelledAtOnce);
    // Claims from before may expire. The lane of a disabled webhook does not contain their times.
    if (!webhook.enabled && next.enabled)
      await tx`update lanes set due_at = now() where webhook_id = ${next.id}`;
    return { ...next, version };
  });
}

/** Stores a changed webhook and returns its new version. */
async function updateWebhook(tx: Transaction, webhook: Webhook): Promise<number> {
  const { secret, previousSecret } = webhook;
  const [row] = await tx<[{ version: number }]>`
    update webhooks set name = ${webhook.name}, url = ${webhook.url},
      events = ${webhook.events}::text[], enabled = ${webhook.enabled},
      trace_context = ${webhook.traceContext}, secret = ${secret?.bytes ?? null}, secret_key_id = ${secret?.keyId ?? null},
      previous_secret = ${previousSecret?.bytes ?? null},
      previous_secret_key_id = ${previousSecret?.keyId ?? null},
      previous_secret_ends_at = ${previousSecret?.endsAt ?? null},
      updated_at = ${webhook.updatedAt}, version = version + 1
    where id = ${webhook.id}
    returning version`;
  return row.version;
}

/**
 * Disables a webhook whose target is gone, and cancels a batch of its open deliveries. The rest of a large backlog is
 * cancelled in the background.
 */
export async function disableWebhook(
  tx: Transaction,
  webhookId: string,
  audit: AuditContext,
): Promise<void> {
  const [row] = await tx<Row[]>`
    update webhooks set enabled = false, updated_at = greatest(updated_at, ${audit.now}),
      version = version + 1
    where id = ${webhookId} and enabled
    returning ${columns}`;
  if (row !== undefined) {
    const disabled = webhookOf(row);
    await writeAudit(tx, webhookAudit({ ...disabled, enabled: true }, disabled, audit));
  }
  await cancelSome(tx, webhookId, cancelledAtOnce);
}

/**
 * Deletes a webhook, unless `permit` returns a problem. Returns undefined if the webhook does not exist. Its deliveries
 * are cancelled after the commit, because a large backlog would hold the lock for seconds. The periodic task cancels those
 * beyond the maximum of a request. They stay until the clean-up, but the API does not return them.
 */
export async function deleteWebhook(
  sql: Sql,
  scope: Scope,
  { permit, audit }: { permit: (webhook: Webhook) => Problem | undefined; audit: AuditContext },
): Promise<Webhook | Problem | undefined> {
  const deleted = await sql.begin(async (tx) => {
    const webhook = await lockWebhook(tx, scope);
    if (webhook === undefined) return undefined;
    const problem = permit(webhook);
    if (problem !== undefined) return problem;
    await tx`delete from webhooks where id = ${webhook.id}`;
    await writeAudit(tx, webhookAudit(webhook, null, audit));
    return webhook;
  });
  if (deleted !== undefined && !isProblem(deleted))
    await cancelSome(sql, deleted.id, cancelledInARequest);
  return deleted;
}

export async function findWebhook(sql: Sql, scope: Scope): Promise<Webhook | undefined> {
  const [row] = await sql<Row[]>`
    select ${columns} from webhooks
    where id = ${scope.webhookId} and project_id = ${scope.projectId}`;
  return row && webhookOf(row);
}

/** Returns the webhooks of a project in the order of creation. */
export async function listWebhooks(sql: Sql, projectId: string): Promise<Webhook[]> {
  const rows = await sql<Row[]>`
    select ${columns} from webhooks where project_id = ${projectId} order by id`;
  return rows.map(webhookOf);
}

async function lockWebhook(tx: Transaction, scope: Scope): Promise<Webhook | undefined> {
  const [row] = await tx<Row[]>`
    select ${columns} from webhooks
    where id = ${scope.webhookId} and project_id = ${scope.projectId}
    for update`;
  return row && webhookOf(row);
}

/** Serializes changes of the names and the number of webhooks in a project. */
async function lockNames(tx: Transaction, projectId: string): Promise<void> {
  await tx`select pg_advisory_xact_lock(hashtextextended(${`webhooks of ${projectId}`}, 0))`;
}

async function checkName(tx: Transaction, webhook: Webhook): Promise<Problem | undefined> {
  const [taken] = await tx`
    select from webhooks
    where project_id = ${webhook.projectId} and name = ${webhook.name} and id <> ${webhook.id}`;
  if (taken === undefined) return undefined;
  return createProblem("CONFLICT_001", "The project has a webhook with this /name already.");
}

/**
 * Bounds the cost of an event: it inserts one delivery for each webhook in one transaction. The response has no
 * `Retry-After`, because waiting does not help.
 */
async function checkCount(
  tx: Transaction,
  webhook: Webhook,
  max: number,
): Promise<Problem | undefined> {
  const [{ count }] = await tx<[{ count: number }]>`
    select count(*)::integer as count from webhooks where project_id = ${webhook.projectId}`;
  if (count < max) return undefined;
  return createProblem(
    "RATE_001",
    `The limit of a project is ${max} webhooks, and this one has ${count}. Delete one, or have the operator raise WEBHOOKS_PER_PROJECT.`,
    { "ratelimit-policy": `"webhooks";q=${max}`, ratelimit: '"webhooks";r=0' },
  );
}

export type SecretColumns = {
  secret: Buffer | null;
  secretKeyId: string | null;
  previousSecret: Buffer | null;
  previousSecretKeyId: string | null;
  previousSecretEndsAt: Date | null;
};

type Row = Omit<Webhook, "secret" | "previousSecret"> & SecretColumns;

const columns = fragment`
  id, organization_id as "organizationId", project_id as "projectId", name, url,
  to_jsonb(events) as events, enabled, trace_context as "traceContext", secret,
  secret_key_id as "secretKeyId", previous_secret as "previousSecret", previous_secret_key_id as "previousSecretKeyId",
  previous_secret_ends_at as "previousSecretEndsAt", version, created_at as "createdAt",
  updated_at as "updatedAt"`;

function webhookOf(row: Row): Webhook {
  const { secretKeyId, previousSecretKeyId, previousSecretEndsAt, ...fields } = row;
  return { ...fields, ...secretsOf(row) };
}

export function secretsOf(row: SecretColumns): Pick<Webhook, "secret" | "previousSecret"> {
  const { secret, secretKeyId, previousSecret, previousSecretKeyId, previousSecretEndsAt } = row;
  return {
    secret: secret === null || secretKeyId === null ? null : { bytes: secret, keyId: secretKeyId },
    previousSecret:
      previousSecret === null || previousSecretKeyId === null || previousSecretEndsAt === null
        ? null
        : { bytes: previousSecret, keyId: previousSecretKeyId, endsAt: previousSecretEndsAt },
  };
}

/** Deletes the webhooks of deleted projects, and cancels their deliveries. */
export async function deleteWebhooksOf(
  sql: Sql,
  projects: readonly { projectId: string }[],
  { newId, mayContinue }: { newId: () => string; mayContinue: () => Promise<boolean> },
): Promise<void> {
  const webhooks = await sql<{ projectId: string; webhookId: string }[]>`
    select project_id as "projectId", id as "webhookId" from webhooks
    where project_id = any(${projects.map(({ projectId }) => projectId)}::uuid[])`;
  for (const webhook of webhooks) {
    if (!(await mayContinue())) return;
    const now = new Date();
    const audit: AuditContext = { author: "webhook-dispatcher", newId, now };
    await deleteWebhook(sql, webhook, { permit: () => undefined, audit });
  }
}
