import { z } from "zod";
import { MatchInput } from "../audiences.ts";
import { ChangeRequestStatus, changeRequestStatuses } from "../change-requests.ts";
import { FlagKey, Name } from "../name.ts";
import { Protection, ProtectionInput } from "../protection.ts";
import { stateInput } from "../state.ts";
import { Variations, VariationsInput } from "../values.ts";
import { ChangeAudienceList } from "./audiences.ts";
import { exampleIds } from "./example-ids.ts";
import { Description, Id, IdParam, InstantIn, InstantOut } from "./fields.ts";
import { FlagState } from "./flags.ts";
import { defineRoute } from "./route.ts";

/** Change requests: changes of protected environments, which other people approve before they are applied. */
/** Maximum number of changes in a request. */
const maxRequestedChanges = 200;

const BaseVersion = z
  .int()
  .min(1)
  .optional()
  .describe("The version that the author saw. By default the current one");
const base = { base_version: BaseVersion };

/** A change of a flag's state in one environment. */
export const RequestedState = z.strictObject({
  ...{ kind: z.literal("state"), flag_id: IdParam, environment_id: IdParam, ...base },
  patch: z.strictObject(stateInput),
});
export const RequestedVariations = z.strictObject({
  ...{ kind: z.literal("flag_variations"), flag_id: IdParam, ...base },
  variations: VariationsInput,
});
export const RequestedDeletion = z.strictObject({
  ...{ kind: z.literal("flag_deletion"), flag_id: IdParam, ...base },
});
export const RequestedAudience = z.strictObject({
  ...{ kind: z.literal("audience"), audience: FlagKey, ...base },
  patch: z.strictObject({ match: MatchInput.optional(), list: z.null().optional() }),
});
export const RequestedEntries = z.strictObject({
  ...{ kind: z.literal("audience_list"), audience: FlagKey, ...base },
  ...ChangeAudienceList.shape,
});
export const RequestedProtection = z.strictObject({
  ...{ kind: z.literal("protection"), environment_id: IdParam, ...base },
  protected: ProtectionInput.nullable(),
});

/** A change in a request to the API. */
export const RequestedChange = z.discriminatedUnion("kind", [
  RequestedState,
  RequestedVariations,
  RequestedDeletion,
  RequestedAudience,
  RequestedEntries,
  RequestedProtection,
]);
export type RequestedChange = z.infer<typeof RequestedChange>;

export const CreateChangeRequest = z.strictObject({
  title: Name.max(200),
  reason: Description.optional(),
  changes: z.array(RequestedChange).min(1).max(maxRequestedChanges),
  apply_at: InstantIn.optional().describe("Applies the request at this time, once it is approved"),
});
export type CreateChangeRequest = z.infer<typeof CreateChangeRequest>;

export const UpdateChangeRequest = z.strictObject({
  title: CreateChangeRequest.shape.title.optional(),
  reason: Description.optional(),
  changes: CreateChangeRequest.shape.changes.optional(),
  apply_at: InstantIn.nullable().optional(),
});
export type UpdateChangeRequest = z.infer<typeof UpdateChangeRequest>;

const ofFlag = { flag_id: Id, flag_key: z.string(), base_version: z.int() };
const ofEnvironment = { environment_id: Id, environment_name: z.string() };
const Settings = FlagState.omit({
  flag_id: true,
  environment_id: true,
  version: true,
  updated_at: true,
});
const SizedList = z.strictObject({ attribute: z.string(), count: z.int() }).nullable();
const AudienceUsers = z.strictObject({ match: MatchInput, list: SizedList });

/** A change with the values before and after it. `now` is present if something else has changed the value meanwhile. */
export const ProposedChange = z.union([
  z.strictObject({
    ...{ kind: z.literal("state"), ...ofFlag, ...ofEnvironment },
    patch: z.strictObject(stateInput),
    ...{ before: Settings, after: Settings, now: Settings.optional() },
    dependents: z.int().describe("The number of flags that require this one in the environment"),
  }),
  z.strictObject({
    ...{ kind: z.literal("flag_variations"), ...ofFlag, variations: Variations },
    ...{ before: Variations, now: Variations.optional() },
  }),
  z.strictObject({ kind: z.literal("flag_deletion"), ...ofFlag }),
  z.strictObject({
    ...{ kind: z.literal("audience"), audience: z.string(), base_version: z.int() },
    patch: z.strictObject({ match: MatchInput.optional(), list: z.null().optional() }),
    ...{ before: AudienceUsers, now: AudienceUsers.optional() },
  }),
  z.strictObject({
    ...{ kind: z.literal("audience_list"), audience: z.string(), base_version: z.int() },
    added: z.int().describe("The number of entries to add. The entries are in no response"),
    removed: z.int(),
  }),
  z.strictObject({
    ...{ kind: z.literal("protection"), ...ofEnvironment, base_version: z.int() },
    ...{ protected: Protection.nullable(), before: Protection.nullable() },
    now: Protection.nullable().optional(),
  }),
]);
export type ProposedChange = z.infer<typeof ProposedChange>;

const Approval = z.strictObject({
  user_id: Id,
  environment_ids: z.array(Id).describe("The environments in which the approver has the role"),
  at: InstantOut,
  content_hash: z.string(),
});

export const ListedChangeRequest = z.strictObject({
  id: Id,
  title: z.string(),
  reason: z.string(),
  status: ChangeRequestStatus,
  content_hash: z
    .string()
    .describe(
      "SHA-256 of everything that an approval covers: the values before and after, the versions of what they refer to, the time and the protection",
    ),
  approvals: z.array(Approval).describe("The approvals of this content"),
  needed: z
    .array(z.strictObject({ ...ofEnvironment, approvals: z.int(), given: z.int() }))
    .describe("The protected environments, with the number of approvals that each needs and has"),
  apply_at: InstantOut.nullable(),
  created_by: Id,
  created_at: InstantOut,
  updated_at: InstantOut,
  applied_at: InstantOut.nullable(),
  cause_id: Id.nullable().describe("The id in all audit entries of the changes, once applied"),
  closed_by: Id.nullable().describe("Who applied, rejected, withdrew or bypassed the request"),
  comment: z.string().nullable().describe("The comment of a rejection"),
  bypass_reason: z.string().nullable().describe("Why the request was applied without approvals"),
  change_count: z.int(),
  summary: z.string().describe("The changes in words, one in each line"),
});
export type ListedChangeRequest = z.infer<typeof ListedChangeRequest>;

export const ChangeRequest = ListedChangeRequest.extend({
  changes: z.array(ProposedChange),
  differences: z
    .array(z.string())
    .describe("What has changed since the request was made. With any entry, the request is stale"),
});
export type ChangeRequest = z.infer<typeof ChangeRequest>;

const collection = "/api/v1/change-requests";
const one = `${collection}/:requestId`;
const shared = { service: "management", access: "server_key", tag: "Change requests" } as const;
const byPeople = { ...shared, access: "session" } as const;
const Params = z.strictObject({ requestId: IdParam });
const success = { status: 200, description: "The change request", body: ChangeRequest } as const;
const transition = { ...shared, method: "POST", params: Params, success } as const;
const errors = ["CONFLICT_001"];

const exampleChange = {
  kind: "state" as const,
  flag_id: exampleIds.flagId,
  environment_id: exampleIds.environmentId,
  patch: { rollout_percentage: 50 },
};
const exampleRequest = {
  title: "Checkout to half of the users",
  reason: "The error rate at 25 % is normal.",
  changes: [exampleChange],
};

export const createChangeRequest = defineRoute({
  ...shared,
  operationId: "createChangeRequest",
  method: "POST",
  path: collection,
  summary: "Open a change request",
  description:
    "Proposes up to 200 changes, which are applied together or not at all. The values after the changes are decided now. Members that have the requested value already are dropped. A request may name environments that are not protected. It needs `viewer` where it makes changes, and `editor` in the project or one of its environments, or a key with the scope `propose`.",
  body: CreateChangeRequest,
  example: exampleRequest,
  idempotent: true,
  success: { ...success, status: 201 },
  errors,
});

export const listChangeRequests = defineRoute({
  ...shared,
  operationId: "listChangeRequests",
  method: "GET",
  path: collection,
  query: z.strictObject({
    status: z
      .string()
      .regex(
        new RegExp(
          `^(?:${changeRequestStatuses.join("|")})(?:,(?:${changeRequestStatuses.join("|")}))*$`,
        ),
      )
      .optional()
      .describe("Statuses separated by commas. By default all but `draft`"),
    limit: z.int().min(1).max(100).optional(),
    before: IdParam.optional().describe("The id of the last request that you have"),
  }),
  summary: "List the change requests of the project, newest first",
  description: "Without their changes. A stale request has the status `stale`.",
  success: {
    status: 200,
    description: "The change requests, 20 by default",
    body: z.strictObject({
      change_requests: z.array(ListedChangeRequest),
      next_before: Id.nullable(),
      pending: z
        .strictObject({ open: z.int(), approved: z.int(), stale: z.int() })
        .describe("Numbers of pending requests by status, regardless of the filter"),
    }),
  },
});

export const getChangeRequest = defineRoute({
  ...shared,
  access: "operator_or_server_key",
  operationId: "getChangeRequest",
  method: "GET",
  path: one,
  params: Params,
  summary: "Read a change request",
  description:
    "With the values before and after each change, and what has changed since the request was made.",
  success,
});

export const updateChangeRequest = defineRoute({
  ...shared,
  operationId: "updateChangeRequest",
  method: "PATCH",
  path: one,
  params: Params,
  summary: "Edit a change request",
  description:
    "Another content removes the approvals. `changes` replaces all changes. Who edits a request cannot approve it, unless the protection allows that.",
  body: UpdateChangeRequest,
  example: { reason: "The error rate at 25 % was normal for a week." },
  success,
  errors,
});

export const openChangeRequest = defineRoute({
  ...transition,
  operationId: "openChangeRequest",
  path: `${one}/open`,
  summary: "Open a draft",
  description: "A write to a protected environment that is refused makes a draft.",
  errors,
});

export const approveChangeRequest = defineRoute({
  ...byPeople,
  operationId: "approveChangeRequest",
  method: "POST",
  path: `${one}/approve`,
  params: Params,
  summary: "Approve a change request",
  description:
    "Needs a sign-in and the role `approver`. An approval is of the content with this hash: 412 if the request has another one. It counts in the environments in which the approver has the role.",
  body: z.strictObject({ content_hash: z.string().max(64) }),
  example: { content_hash: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" },
  success,
  errors: [...errors, "CONFLICT_003"],
});

export const rejectChangeRequest = defineRoute({
  ...byPeople,
  operationId: "rejectChangeRequest",
  method: "POST",
  path: `${one}/reject`,
  params: Params,
  summary: "Reject a change request",
  description: "Needs a sign-in and the role `approver`. One rejection ends the request.",
  body: z.strictObject({ comment: Description.optional() }),
  bodyOptional: true,
  example: { comment: "Wait for the end of the sale." },
  success,
  errors,
});

export const withdrawChangeRequest = defineRoute({
  ...transition,
  operationId: "withdrawChangeRequest",
  path: `${one}/withdraw`,
  summary: "Withdraw one's own change request",
  description: "For its author, and for admins.",
  errors,
});

export const rebaseChangeRequest = defineRoute({
  ...transition,
  operationId: "rebaseChangeRequest",
  path: `${one}/rebase`,
  summary: "Base a stale change request on the current values",
  description: "Decides the values after the changes again. The approvals are removed.",
  errors,
});

export const applyChangeRequest = defineRoute({
  ...transition,
  operationId: "applyChangeRequest",
  path: `${one}/apply`,
  summary: "Apply an approved change request",
  description:
    "For its author, and for approvers. All changes are made in one transaction, or none: if anything differs from what was approved, the request becomes stale. A request with `apply_at` is applied by itself.",
  errors: [...errors, "APPROVAL_001"],
});

export const bypassChangeRequest = defineRoute({
  ...shared,
  access: "operator_or_session",
  operationId: "bypassChangeRequest",
  method: "POST",
  path: `${one}/bypass`,
  params: Params,
  summary: "Apply a change request without approvals",
  description:
    "Needs `admin` in all of its environments and a recent sign-in, or the operator's token. The reason is in the audit log and in the webhook `change_request.bypassed`.",
  body: z.strictObject({ reason: Description.min(1) }),
  example: { reason: "The payment provider is down, and both approvers are on a flight." },
  success,
  errors,
});
