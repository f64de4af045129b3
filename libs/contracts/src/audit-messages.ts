import { z } from "zod";
import { compileCheck } from "./json-schema.ts";
import { ChangeVia } from "./people.ts";

/**
 * `audit.recorded`: a change of a webhook or a schedule, for the project's audit log. The service that made the change
 * writes the message in the transaction of the change.
 */
export const AuditRecorded = z.object({
  /** Id of the entry in the audit log. A duplicate message adds no second entry. */
  id: z.uuid(),
  organization_id: z.uuid(),
  project_id: z.uuid(),
  action: z.enum([
    "webhook_created",
    "webhook_changed",
    "webhook_deleted",
    "schedule_set",
    "schedule_replaced",
    "schedule_cleared",
  ]),
  service: z.string().max(100),
  /** The user of the API key or of the session; null for an automatic change of the service. */
  user_id: z.uuid().nullable(),
  /** The API key used for the change; null for a session and for an automatic change of the service. */
  api_key_id: z.string().nullable(),
  /** Present for a session: how the person has signed in. */
  via: ChangeVia.optional(),
  /** The webhook; null for a schedule. */
  webhook_id: z.uuid().nullable(),
  /** The flag and the environment of the schedule; null for a webhook. */
  flag_id: z.uuid().nullable(),
  environment_id: z.uuid().nullable(),
  before: z.record(z.string(), z.unknown()).nullable(),
  after: z.record(z.string(), z.unknown()).nullable(),
  changed_at: z.string().meta({ format: "date-time" }),
});
export type AuditRecorded = z.infer<typeof AuditRecorded>;

export const checkAuditRecorded = compileCheck(AuditRecorded);
