import type {
  AuditRecorded,
  CreateWebhook,
  EventName,
  SignInMethod,
  UpdateWebhook,
} from "@halyard/contracts";
import { createProblem, type Problem } from "@halyard/http";
import type { SealedSecret, SecretBox } from "../secrets/secret-box.ts";
import { readTarget, type TargetRules } from "../targets/target.ts";

/** A customer's URL that receives events of one project, in all its environments. */
export type Webhook = {
  id: string;
  organizationId: string;
  projectId: string;
  /** Unique in the project. */
  name: string;
  /** As the customer wrote it. */
  url: string;
  events: EventName[];
  /** A disabled webhook receives no events, but users can still test it and request redeliveries. */
  enabled: boolean;
  /** Deliveries have the headers of W3C Trace Context, if there are traces. */
  traceContext: boolean;
  /** Null: deliveries are not signed. */
  secret: SealedSecret | null;
  /** The previous secret, for signatures of Standard Webhooks. Check `endsAt` before use. */
  previousSecret: (SealedSecret & { endsAt: Date }) | null;
  /** Starts at 1. The database raises it with each change, also of the secret. */
  version: number;
  createdAt: Date;
  updatedAt: Date;
};

/** Inputs of the decisions about a request. The schema has validated the other constraints. */
type ChangeContext = { rules: TargetRules; secrets: SecretBox; now: Date };

/** Maximum length of a secret, in the UTF-8 bytes that sign. */
const maxSecretBytes = 256;

export function decideCreate(
  scope: { id: string; organizationId: string; projectId: string },
  request: CreateWebhook,
  { rules, secrets, now }: ChangeContext,
): Webhook | Problem {
  const problem = checkUrl(request.url, rules) ?? checkSecret(request.secret);
  if (problem !== undefined) return problem;
  const secret = request.secret ?? null;
  return {
    ...scope,
    name: request.name,
    url: request.url,
    events: request.events,
    enabled: request.enabled ?? true,
    traceContext: request.trace_context ?? false,
    secret: secret === null ? null : secrets.seal(scope.id, secret),
    previousSecret: null,
    version: 1,
    createdAt: now,
    updatedAt: now,
  };
}

/** Decrypts the current secret. Returns undefined if there is none, or if it cannot be decrypted. */
type PresentSecret = { presentSecret: (webhook: Webhook) => string | undefined };

/** Applies a request to a webhook. Returns the same object if the request changes nothing. */
export function decideUpdate(
  webhook: Webhook,
  request: UpdateWebhook,
  context: ChangeContext & PresentSecret,
): Webhook | Problem {
  const { name = webhook.name, url = webhook.url, enabled = webhook.enabled } = request;
  const problem =
    (request.url === undefined ? undefined : checkUrl(url, context.rules)) ??
    checkSecret(request.secret);
  if (problem !== undefined) return problem;
  const events = sameEvents(webhook, request) ? webhook.events : (request.events ?? webhook.events);
  const next = {
    ...webhook,
    name,
    url,
    enabled,
    traceContext: request.trace_context ?? webhook.traceContext,
    events,
    ...decideSecrets(webhook, request, context),
  };
  const changed = (Object.keys(next) as (keyof Webhook)[]).some(
    (field) => next[field] !== webhook[field],
  );
  return changed ? { ...next, updatedAt: context.now } : webhook;
}

function sameEvents(webhook: Webhook, { events }: UpdateWebhook): boolean {
  return events?.join() === webhook.events.join();
}

/**
 * Decides the secrets after a request. If the requested secret is already the current one, it stays, and so does the
 * previous one if the request has an overlap. Therefore a client can repeat a request whose response was lost.
 */
function decideSecrets(
  webhook: Webhook,
  request: UpdateWebhook,
  { secrets, now, presentSecret }: ChangeContext & PresentSecret,
): Pick<Webhook, "secret" | "previousSecret"> {
  const { secret: before, previousSecret } = webhook;
  const { secret: text, secret_overlap_seconds: overlapSeconds = 0 } = request;
  if (text === undefined) return { secret: before, previousSecret };
  if (text === null) return { secret: null, previousSecret: null };
  const present = presentSecret(webhook);
  if (text === present)
    return { secret: before, previousSecret: overlapSeconds > 0 ? previousSecret : null };
  const overlaps = before !== null && present !== undefined && overlapSeconds > 0;
  const endsAt = new Date(now.getTime() + overlapSeconds * 1_000);
  return {
    secret: secrets.seal(webhook.id, text),
    previousSecret: overlaps ? { ...before, endsAt } : null,
  };
}

function checkUrl(url: string, rules: TargetRules): Problem | undefined {
  if (!url.isWellFormed())
    return createProblem(
      "VALIDATION_001",
      "/url must be well-formed Unicode, without lone surrogates.",
    );
  const { problem } = readTarget(url, rules);
  return problem === undefined ? undefined : createProblem("VALIDATION_001", `/url ${problem}.`);
}

function checkSecret(secret: string | null | undefined): Problem | undefined {
  if (secret === undefined || secret === null) return undefined;
  if (!secret.isWellFormed())
    return createProblem(
      "VALIDATION_001",
      "/secret must be well-formed Unicode, without lone surrogates.",
    );
  const bytes = Buffer.byteLength(secret);
  if (bytes >= 1 && bytes <= maxSecretBytes) return undefined;
  return createProblem(
    "VALIDATION_001",
    `/secret must be 1 to ${maxSecretBytes} bytes of UTF-8, or null for none; it has ${bytes} bytes.`,
  );
}

/** The user of a change, with the API key or with the sign-in of the session, or the service itself. */
type Author =
  | { userId: string; apiKeyId: string | null; via?: SignInMethod | undefined }
  | "webhook-dispatcher";

export type AuditContext = { author: Author; newId: () => string; now: Date };

/** Returns the message for the audit log about a webhook that was created (`before` is null), changed or deleted. */
export function webhookAudit(
  before: Webhook | null,
  after: Webhook | null,
  { author, newId, now }: AuditContext,
): AuditRecorded {
  const webhook = (after ?? before) as Webhook;
  const isService = author === "webhook-dispatcher";
  return {
    id: newId(),
    organization_id: webhook.organizationId,
    project_id: webhook.projectId,
    action: actionOf(before, after),
    service: "webhook-dispatcher",
    user_id: isService ? null : author.userId,
    api_key_id: isService ? null : author.apiKeyId,
    ...(!isService && author.via !== undefined && { via: author.via }),
    webhook_id: webhook.id,
    flag_id: null,
    environment_id: null,
    before: before && auditedWebhook(before),
    after: after && {
      ...auditedWebhook(after),
      ...(before && { changed_fields: changedFields(before, after) }),
    },
    changed_at: now.toISOString(),
  };
}

function actionOf(before: Webhook | null, after: Webhook | null): AuditRecorded["action"] {
  if (before === null) return "webhook_created";
  return after === null ? "webhook_deleted" : "webhook_changed";
}

function auditedWebhook(webhook: Webhook): Record<string, unknown> {
  return {
    name: webhook.name,
    url: maskedUrl(webhook.url),
    events: webhook.events,
    enabled: webhook.enabled,
    ...(webhook.traceContext && { trace_context: true }),
    has_secret: webhook.secret !== null,
  };
}

/** The masked URL and `has_secret` can be the same before and after a change. */
function changedFields(before: Webhook, after: Webhook): string[] {
  const fields = ["name", "url", "events", "enabled", "secret"] as const;
  const changed: string[] = fields.filter((field) => before[field] !== after[field]);
  return before.traceContext === after.traceContext ? changed : [...changed, "trace_context"];
}

/**
 * Returns the URL without user info and query, and with each segment of the path as `***`. The URLs of chat systems
 * contain their secret in the path.
 */
function maskedUrl(text: string): string {
  const { protocol, host, pathname } = new URL(text);
  return `${protocol}//${host}${pathname.replaceAll(/[^/]+/gu, "***")}`;
}
