import { z } from "zod";
import { RolloutPercentage } from "../rules.ts";
import { State } from "../state.ts";
import { Id, IdParam, InstantOut } from "./fields.ts";
import { defineRoute } from "./route.ts";

/** The history of a flag's state in an environment, and its rollback. */
export const ChangeType = z.enum(["manual", "scheduled", "rollback"]);

export const HistoryEntry = z.strictObject({
  id: Id,
  ...State.shape,
  changed_at: InstantOut,
  changed_by: Id.describe("The user who made the change; the nil UUID for the operator"),
  change_type: ChangeType,
  changed_audiences: z
    .array(z.strictObject({ key: z.string(), changed_at: InstantOut.nullable() }))
    .optional()
    .describe(
      "The audiences in the rules that have changed since, with the time of their last change. Null: the audience no longer exists",
    ),
});
export type HistoryEntry = z.infer<typeof HistoryEntry>;

export const Rollback = z.strictObject({
  message: z.string(),
  enabled: z.boolean(),
  rollout_percentage: RolloutPercentage,
  rolled_back_to: InstantOut.describe("When the restored state had first taken effect"),
});

const basePath = "/api/v1/flags/:flagId/environments/:envId";
const Params = z.strictObject({ flagId: IdParam, envId: IdParam });
const shared = { service: "management", tag: "History" } as const;

export const getHistory = defineRoute({
  ...shared,
  access: "operator_or_server_key",
  operationId: "getHistory",
  method: "GET",
  path: `${basePath}/history`,
  params: Params,
  summary: "Read the history of a flag's state in an environment, newest first",
  description:
    "Without `limit`, the last 20 changes. Each entry is the complete state after one change. To read older entries, set `before` to the id of the last entry that you have. With `limit` or `before`, the response also has `next_before`, which is null on the last page. A page can have fewer entries than `limit` if the rules are large.",
  query: z.strictObject({
    limit: z.int().min(1).max(1000).optional(),
    before: IdParam.optional(),
  }),
  success: {
    status: 200,
    description: "The entries",
    body: z.strictObject({
      history: z.array(HistoryEntry),
      next_before: Id.nullable().optional(),
    }),
  },
});

export const rollBack = defineRoute({
  ...shared,
  access: "server_key",
  operationId: "rollBack",
  protectable: true,
  method: "POST",
  path: `${basePath}/rollback`,
  params: Params,
  summary: "Restore the state before the newest history entry",
  description:
    "Restores the whole state, and adds a history entry. Two rollbacks in a row therefore undo each other. A state that refers to an audience, a flag or a variation that no longer exists is not restored: 409 names it. Send `If-Match` with the version that you want to undo, so that a repeated request cannot roll back twice.",
  conditional: true,
  idempotent: true,
  success: { status: 200, description: "The restored state", body: Rollback },
  errors: ["CONFLICT_001", "CONFLICT_002", "CONFLICT_003"],
});
