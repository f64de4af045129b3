import type { AuditedChange } from "@halyard/contracts";
import type { Actor, Cause } from "../flags/occasion.ts";

/** An entry of the audit log. Changes of users belong to an organization, all others to a project. */
export type AuditEntry = (
  | { projectId: string; environmentId: string | null }
  | { organizationId: string }
) & {
  id: string;
  action: AuditedChange["action"];
  cause: Cause;
  actor: Actor;
  /** The API key used for the change; null for the operator and for scheduled changes. */
  apiKeyId: string | null;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
  changedAt: Date;
  // The subject of the change, unless it is the project or the environment itself.
  flagId?: string;
  flagKey?: string;
  keyId?: string;
  webhookId?: string;
  userId?: string;
};
