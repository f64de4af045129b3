import { z } from "zod";
import { ChangeVia } from "../people.ts";
import { Id, IdParam, InstantIn, InstantOut } from "./fields.ts";
import { ChangeType } from "./history.ts";
import { defineRoute } from "./route.ts";

/** Changes of an organization's users, which the audit logs of its projects contain too. */
const userActions = ["user_created", "user_changed", "user_deleted"] as const;

const AuditedAction = z.enum([
  "created",
  "settings",
  "state",
  "deleted",
  "key_issued",
  "key_rotated",
  "key_revoked",
  "environment_created",
  "environment_renamed",
  "environment_changed",
  "environment_deleted",
  "project_created",
  "project_renamed",
  "project_deleted",
  ...userActions,
  "webhook_created",
  "webhook_changed",
  "webhook_deleted",
  "schedule_set",
  "schedule_replaced",
  "schedule_cleared",
  "audience_created",
  "audience_changed",
  "audience_list_changed",
  "audience_deleted",
  "change_request_opened",
  "change_request_edited",
  "change_request_approved",
  "change_request_rejected",
  "change_request_withdrawn",
  "change_request_rebased",
  "change_request_applied",
  "change_request_bypassed",
  "change_request_stale",
  "change_request_reopened",
]);

const Actor = z
  .strictObject({
    id: Id,
    email: z.string(),
    via: ChangeVia.optional().describe(
      "The identification of the actor: a method of sign-in, `key`, `schedule`, or `operator` for the operator's token and for a sign-in by the operator's link. Absent for a service, and in entries of earlier releases",
    ),
  })
  .describe(
    "The user of the API key or of the session. The operator has the nil UUID and the email `operator`; an automatic change of a service has the nil UUID and the name of the service.",
  );
const ApiKeyId = z
  .string()
  .nullable()
  .describe(
    "The API key used for the change. Null for the operator, for signed-in people, for scheduled changes, and for entries from before release 0.2.0",
  );

/** An entry of the audit log of a project. */
export const AuditedChange = z.strictObject({
  id: Id,
  action: AuditedAction.describe(
    "`created`, `settings`, `state` and `deleted` are changes of the flag in `flag_id`",
  ),
  change_type: ChangeType,
  cause_id: Id.optional().describe("The same in all entries of one change request"),
  flag_id: Id.nullable(),
  flag_key: z.string().nullable(),
  key_id: z.string().nullable().describe("The API key that was issued, rotated or revoked"),
  webhook_id: Id.nullable(),
  user_id: Id.nullable().describe("The user that was created, changed or deleted"),
  audience_key: z.string().optional().describe("The audience that was changed"),
  environment_id: Id.nullable().describe("Null for a change that concerns no single environment"),
  actor: Actor,
  api_key_id: ApiKeyId,
  before: z.record(z.string(), z.unknown()).nullable(),
  after: z.record(z.string(), z.unknown()).nullable(),
  changed_at: InstantOut,
});
export type AuditedChange = z.infer<typeof AuditedChange>;

export const listChanges = defineRoute({
  service: "management",
  access: "operator_or_server_key",
  tag: "History",
  operationId: "listChanges",
  method: "GET",
  path: "/api/v1/projects/:projectId/changes",
  params: z.strictObject({ projectId: IdParam }),
  summary: "Read the audit log of a project, the newest first",
  description:
    "The entries of a flag remain after its deletion. A request has one entry for each resource that it changes, such as each API key that ends with its user. The creation and the deletion of a flag have one entry, with the state in the environment of the key. A change of settings that also changes a state is one `settings` entry with both. Entries are in the order of the commits of management; `changed_at` of webhooks and schedules is the time at their service. Changes of the organization's users are in the audit log of each of its projects. URLs of webhooks have no user info and no query, and `***` in place of each segment of the path. Changes of webhooks and schedules appear within seconds. An `environment_only` key sees only the changes that name its environment: no settings of flags, webhooks, users or the project, and no creation or deletion of a flag by a key of another environment. Filters can be combined. A page of large changes can have fewer entries than `limit`. `next_cursor` is null on the last page.",
  query: z.strictObject({
    flag_id: IdParam.optional(),
    actor_id: IdParam.optional().describe(
      "Lists only the changes of this user. The nil UUID selects those of the operator and of services",
    ),
    action: AuditedAction.optional(),
    since: InstantIn.optional().describe("Lists only changes at or after this instant"),
    until: InstantIn.optional().describe("Lists only changes before this instant"),
    limit: z.int().min(1).max(1000).optional(),
    cursor: z.string().max(400).optional(),
  }),
  success: {
    status: 200,
    description: "A page of changes: 100 entries without `limit`",
    body: z.strictObject({ changes: z.array(AuditedChange), next_cursor: z.string().nullable() }),
  },
});

const OrganizationAction = z.enum([
  ...userActions,
  "user_linked",
  "user_unlinked",
  "invited",
  "invitation_withdrawn",
  "sign_in_link_created",
  "granted",
  "grant_withdrawn",
  "signed_in",
  "signed_out",
  "sessions_ended",
  "passkey_added",
  "passkey_removed",
]);

/** An entry of the audit log of an organization. */
export const OrganizationChange = z.strictObject({
  id: Id,
  action: OrganizationAction,
  user_id: Id.nullable().describe("The user whom the change concerns; null for a group"),
  actor: Actor,
  api_key_id: ApiKeyId,
  before: z.record(z.string(), z.unknown()).nullable(),
  after: z.record(z.string(), z.unknown()).nullable(),
  changed_at: InstantOut,
});
export type OrganizationChange = z.infer<typeof OrganizationChange>;

export const listOrganizationChanges = defineRoute({
  service: "management",
  access: "operator_or_session",
  tag: "People",
  operationId: "listOrganizationChanges",
  method: "GET",
  path: "/api/v1/organizations/:organizationId/changes",
  params: z.strictObject({ organizationId: IdParam }),
  summary: "Read the audit log of an organization's people, the newest first",
  description:
    "For owners and the operator: users, invitations, grants and sign-ins. Changes of a project are in the audit log of the project. Filters can be combined. `next_cursor` is null on the last page.",
  query: z.strictObject({
    actor_id: IdParam.optional(),
    action: OrganizationAction.optional(),
    since: InstantIn.optional().describe("Lists only changes at or after this instant"),
    until: InstantIn.optional().describe("Lists only changes before this instant"),
    limit: z.int().min(1).max(1000).optional(),
    cursor: z.string().max(400).optional(),
  }),
  success: {
    status: 200,
    description: "A page of changes: 100 entries without `limit`",
    body: z.strictObject({
      changes: z.array(OrganizationChange),
      next_cursor: z.string().nullable(),
    }),
  },
});

/** Maximum number of missed changes that a stream sends after a reconnection. */
export const maxMissedChanges = 1_000;

export const streamChanges = defineRoute({
  service: "management",
  access: "operator_or_server_key",
  tag: "History",
  operationId: "streamChanges",
  method: "GET",
  path: "/api/v1/projects/:projectId/changes/stream",
  params: z.strictObject({ projectId: IdParam }),
  summary: "Stream the changes of a project as they are made",
  description: `Server-sent events. Each \`change\` event is one entry of the audit log, in the form and with the visibility of \`GET …/changes\`; its \`id\` is the id of the entry. An \`environment_only\` key receives \`flag_changed\` with only \`flag_id\` and \`flag_key\` if a flag is created or deleted with a key of another environment, or if its settings change. \`heartbeat\` is sent at the start and every 15 seconds; the first one has the id of the newest entry, so a list that is read after it misses nothing. After a reconnection with \`Last-Event-ID\`, the stream sends the changes that were missed, each once and in order. \`reset\` is sent instead if there are more than ${maxMissedChanges.toLocaleString("en")}, or if the id is unknown: then read the list again. The stream uses no stream and no request of the plan. All keys of an organization together can have 100 open streams in each process of management. The stream ends with its key and with its project.`,
  success: {
    status: 200,
    description: "Events `change`, `flag_changed`, `heartbeat` and `reset`",
    contentType: "text/event-stream",
  },
});
