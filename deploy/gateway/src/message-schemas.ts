import {
  AudienceEntry,
  AudienceEvent,
  AuditRecorded,
  ChangeRequestEvent,
  ChunkEntry,
  CompleteEntry,
  EdgeReport,
  EdgeStreams,
  EnvironmentEntry,
  EvaluationsReported,
  FlagEntry,
  FlagEvent,
  KeyEntry,
  OrganizationEntry,
  PlansEntry,
  ProcessStatus,
  ProjectEntry,
  ProtectionEvent,
  QuotaEntry,
  ScheduleDue,
  ScheduleResolved,
  Tombstone,
  toJsonSchema,
  UsageLastSeen,
  UsageRecorded,
  UserErased,
  WebhookPayload,
} from "@halyard/contracts";
import type { z } from "zod";

/** Schemas of the messages sent through NATS or to webhooks, by file name, for consumers in any language. */
const messages: Readonly<Record<string, z.ZodType>> = {
  "audience-event": AudienceEvent,
  "audit-recorded": AuditRecorded,
  "change-request-event": ChangeRequestEvent,
  "edge-report": EdgeReport,
  "edge-streams": EdgeStreams,
  "evaluations-reported": EvaluationsReported,
  "flag-event": FlagEvent,
  "process-status": ProcessStatus,
  "protection-event": ProtectionEvent,
  "schedule-due": ScheduleDue,
  "schedule-resolved": ScheduleResolved,
  "snapshot-audience": AudienceEntry,
  "snapshot-chunk": ChunkEntry,
  "snapshot-complete": CompleteEntry,
  "snapshot-deleted": Tombstone,
  "snapshot-environment": EnvironmentEntry,
  "snapshot-flag": FlagEntry,
  "snapshot-key": KeyEntry,
  "snapshot-organization": OrganizationEntry,
  "snapshot-plans": PlansEntry,
  "snapshot-project": ProjectEntry,
  quota: QuotaEntry,
  "usage-last-seen": UsageLastSeen,
  "usage-recorded": UsageRecorded,
  "user-erased": UserErased,
  "webhook-payload": WebhookPayload,
};

/** The version of JSON Schema. */
const $schema = "https://json-schema.org/draft/2020-12/schema";

export function messageSchemas(): { name: string; schema: unknown }[] {
  return Object.entries(messages).map(([name, schema]) => ({
    name: `${name}.schema.json`,
    schema: { title: name, $schema, ...toJsonSchema(schema) },
  }));
}
