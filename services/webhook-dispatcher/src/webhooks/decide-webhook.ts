import type { CreateWebhook, UpdateWebhook } from "@halyard/contracts";
import { type Refusal, refuse } from "@halyard/service";
import type { SecretBox } from "../secrets/secret-box.ts";
import { readTarget, type TargetRules } from "../targets/target.ts";
import type { Webhook } from "./webhook.ts";

/** What a webhook becomes by a request, or why it cannot. The schema has seen to the rest. */
export type Occasion = { rules: TargetRules; secrets: SecretBox; now: Date };

/** So that a secret fits everywhere that one is put; counted as the bytes that are signed with. */
const longestSecretBytes = 256;

export function decideCreate(
  place: { id: string; organizationId: string; projectId: string },
  request: CreateWebhook,
  { rules, secrets, now }: Occasion,
): Webhook | Refusal {
  const refusal = checkUrl(request.url, rules) ?? checkSecret(request.secret);
  if (refusal !== undefined) return refusal;
  const secret = request.secret ?? null;
  return {
    ...place,
    name: request.name,
    url: request.url,
    events: request.events,
    enabled: request.enabled ?? true,
    secret: secret === null ? null : secrets.seal(place.id, secret),
    previousSecret: null,
    createdAt: now,
    updatedAt: now,
  };
}

/** What deliveries are signed with at present; undefined when nothing is, or nobody can read it. */
type PresentSecret = { presentSecret: (webhook: Webhook) => string | undefined };

/** A request that changes nothing is answered with the very webhook that it was made of. */
export function decideUpdate(
  webhook: Webhook,
  request: UpdateWebhook,
  occasion: Occasion & PresentSecret,
): Webhook | Refusal {
  const { name = webhook.name, url = webhook.url, enabled = webhook.enabled } = request;
  const refusal =
    (request.url === undefined ? undefined : checkUrl(url, occasion.rules)) ??
    checkSecret(request.secret);
  if (refusal !== undefined) return refusal;
  const events = sameEvents(webhook, request) ? webhook.events : (request.events ?? webhook.events);
  const next = {
    ...webhook,
    name,
    url,
    enabled,
    events,
    ...decideSecrets(webhook, request, occasion),
  };
  const changed = (Object.keys(next) as (keyof Webhook)[]).some(
    (field) => next[field] !== webhook[field],
  );
  return changed ? { ...next, updatedAt: occasion.now } : webhook;
}

function sameEvents(webhook: Webhook, { events }: UpdateWebhook): boolean {
  return events?.join() === webhook.events.join();
}

/**
 * A secret that is there already stays as it is, and so does the one before if the request has an
 * overlap: so a request whose answer was lost can be repeated.
 */
function decideSecrets(
  webhook: Webhook,
  request: UpdateWebhook,
  { secrets, now, presentSecret }: Occasion & PresentSecret,
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

function checkUrl(url: string, rules: TargetRules): Refusal | undefined {
  if (!url.isWellFormed())
    return refuse("VALIDATION_001", "/url must be well-formed Unicode, without lone surrogates.");
  const { problem } = readTarget(url, rules);
  return problem === undefined ? undefined : refuse("VALIDATION_001", `/url ${problem}.`);
}

function checkSecret(secret: string | null | undefined): Refusal | undefined {
  if (secret === undefined || secret === null) return undefined;
  if (!secret.isWellFormed())
    return refuse(
      "VALIDATION_001",
      "/secret must be well-formed Unicode, without lone surrogates.",
    );
  const bytes = Buffer.byteLength(secret);
  if (bytes >= 1 && bytes <= longestSecretBytes) return undefined;
  return refuse(
    "VALIDATION_001",
    `/secret must be 1 to ${longestSecretBytes} bytes of UTF-8, or null for none; it has ${bytes} bytes.`,
  );
}
