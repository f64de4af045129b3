import { z } from "zod";
import { RolloutPercentage, TargetingRules } from "../rules.ts";
import { Id, IdParam, InstantOut } from "./fields.ts";
import { defineRoute } from "./route.ts";

/** What a flag's state was in an environment, change by change, and the way back. */
export const ChangeType = z.enum(["manual", "scheduled", "rollback"]);

export const HistoryEntry = z.strictObject({
  id: Id,
  enabled: z.boolean(),
  rollout_percentage: RolloutPercentage,
  targeting_rules: TargetingRules,
  changed_at: InstantOut,
  changed_by: Id.describe("The user who made the change; the nil UUID for the operator"),
  change_type: ChangeType,
});
export type HistoryEntry = z.infer<typeof HistoryEntry>;

export const Rollback = z.strictObject({
  message: z.string(),
  enabled: z.boolean(),
  rollout_percentage: RolloutPercentage,
  rolled_back_to: InstantOut.describe("When the state that is back now had come into being"),
});
export type Rollback = z.infer<typeof Rollback>;

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
  summary: "Read what a flag's state was in an environment, the newest first",
  description:
    "The last 20 changes. Each entry is the whole state from that change on. To read further back, give `before`, the id of the last entry that you have; with `limit` or `before` the answer also has `next_before`, null at the end. A page can be shorter than `limit` where the rules are large.",
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
  method: "POST",
  path: `${basePath}/rollback`,
  params: Params,
  summary: "Bring back the state that stood before the newest entry of the history",
  description:
    "Whether it is on, its rollout and its rules come back, as a new entry; so two rollbacks in a row undo each other. Send `If-Match` with the version that you want to undo, so that a request that is repeated cannot undo twice.",
  conditional: true,
  idempotent: true,
  success: { status: 200, description: "What is in effect now", body: Rollback },
  errors: ["CONFLICT_001", "CONFLICT_002", "CONFLICT_003"],
});
