import {
  type AuditedChange,
  type ChangeVia,
  type Match,
  matchOf,
  type OrganizationChange,
  type StoredVariations,
  stateOf,
} from "@halyard/contracts";
import { RawJson } from "@halyard/http";
import type { Actor, Attribution, Cause, ChangeContext } from "../access/change-context.ts";

/** An entry of the audit log. Changes of people belong to an organization, all others to a project. */
export type AuditEntry = AuditedScope &
  AuditedDifference &
  Attribution & { id: string; cause: Cause; causeId?: string | null; changedAt: Date };

type AuditedScope =
  | { projectId: string; environmentId: string | null }
  | { organizationId: string };

type AuditedDifference = {
  action: AuditedChange["action"] | OrganizationChange["action"];
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
  // The subject of the change, unless the subject is the project or the environment.
  flagId?: string;
  flagKey?: string;
  keyId?: string;
  webhookId?: string;
  userId?: string;
  audienceKey?: string;
};

/** Returns the audit entry of a change. `changedAt` defaults to the time of the context. */
export function auditEntry(
  context: ChangeContext,
  change: AuditedScope & AuditedDifference & { changedAt?: Date },
): AuditEntry {
  const { cause, causeId = null, actor, apiKeyId, via, now: changedAt } = context;
  return { id: context.newId(), cause, causeId, actor, apiKeyId, via, changedAt, ...change };
}

/** An entry as stored, with the actions of the audit log of a project or of an organization. */
export type StoredAuditEntry<Action = AuditedChange["action"]> = {
  id: string;
  action: Action;
  cause: Cause;
  causeId: string | null;
  flagId: string | null;
  flagKey: string | null;
  keyId: string | null;
  webhookId: string | null;
  userId: string | null;
  audienceKey: string | null;
  environmentId: string | null;
  actor: Actor;
  apiKeyId: string | null;
  via: ChangeVia | null;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
  changedAt: Date;
};

/** An entry of the audit log of a project as the API returns it. */
export function auditEntryResource(change: StoredAuditEntry): AuditedChange {
  return {
    id: change.id,
    action: change.action,
    change_type: change.cause,
    ...(change.causeId === null ? {} : { cause_id: change.causeId }),
    flag_id: change.flagId,
    flag_key: change.flagKey,
    key_id: change.keyId,
    webhook_id: change.webhookId,
    user_id: change.userId,
    ...(change.audienceKey === null ? {} : { audience_key: change.audienceKey }),
    environment_id: change.environmentId,
    actor: actorResource(change),
    api_key_id: change.apiKeyId,
    before: valuesResource(change.before),
    after: valuesResource(change.after),
    changed_at: change.changedAt.toISOString(),
  };
}

/** An entry of the audit log of an organization as the API returns it. */
export function organizationEntryResource(
  change: StoredAuditEntry<OrganizationChange["action"]>,
): OrganizationChange {
  return {
    id: change.id,
    action: change.action,
    user_id: change.userId,
    actor: actorResource(change),
    api_key_id: change.apiKeyId,
    before: change.before,
    after: change.after,
    changed_at: change.changedAt.toISOString(),
  };
}

function actorResource({
  actor,
  via,
}: Pick<StoredAuditEntry, "actor" | "via">): AuditedChange["actor"] {
  return { ...actor, ...(via !== null && { via }) };
}

/**
 * Orders the members of rules and of the conditions of audiences, and replaces stored variations by those of the API,
 * whose values keep their text. The other values stay in the order of `jsonb`.
 */
function valuesResource(values: Record<string, unknown> | null): Record<string, unknown> | null {
  if (values === null) return null;
  const { match, variations } = values as { match?: Match; variations?: StoredVariations };
  return {
    ...values,
    ...(variations && {
      variations: variations.map(({ json, ...rest }) => ({ ...rest, value: new RawJson(json) })),
    }),
    ...stateOf(values),
    ...(match && { match: matchOf(match) }),
  };
}
