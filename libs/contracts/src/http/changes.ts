import { z } from "zod";
import { Id, IdParam, InstantOut } from "./fields.ts";
import { ChangeType } from "./history.ts";
import { defineRoute } from "./route.ts";

/** The audit log of a project: every change of a flag, a key or an environment, and who made it. */
export const AuditedChange = z.strictObject({
  id: Id,
  action: z
    .enum([
      "created",
      "settings",
      "state",
      "deleted",
      "key_issued",
      "key_rotated",
      "key_revoked",
      "environment_created",
    ])
    .describe("`created`, `settings`, `state` and `deleted` are of the flag that is named"),
  change_type: ChangeType,
  flag_id: Id.nullable(),
  flag_key: z.string().nullable(),
  key_id: z.string().nullable(),
  environment_id: Id.nullable().describe("Null where the change was not of one environment"),
  actor: z
    .strictObject({ id: Id, email: z.string() })
    .describe("Who made it; the operator has the nil UUID and `operator`"),
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
    "A flag's changes stay when the flag is deleted; its deletion is told once for each environment, with what the flag was there. A flag's creation is told once, in the environment of the key that created it. An `environment_only` key sees the changes that name its environment: no settings of flags, which are of none, and no creation of a flag by a key of another environment. A page can be shorter than `limit` where the changes are large; `next_cursor` is null at the end.",
  query: z.strictObject({
    flag_id: IdParam.optional(),
    limit: z.int().min(1).max(1000).optional(),
    cursor: z.string().max(400).optional(),
  }),
  success: {
    status: 200,
    description: "A page of changes, 100 of them unless `limit` says otherwise",
    body: z.strictObject({ changes: z.array(AuditedChange), next_cursor: z.string().nullable() }),
  },
});
