import type { Actor } from "../flags/occasion.ts";

/** One line of a project's audit log about an environment or an API key of it. */
export type AuditEntry = {
  id: string;
  projectId: string;
  environmentId: string;
  keyId: string | null;
  action: "environment_created" | "key_issued" | "key_rotated" | "key_revoked";
  actor: Actor;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
  changedAt: Date;
};
