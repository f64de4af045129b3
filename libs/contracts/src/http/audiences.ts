import { z } from "zod";
import { AudienceChange, ListEntry, Match, MatchInput, maxChangedEntries } from "../audiences.ts";
import { FlagKey, Name } from "../name.ts";
import { AttributeName, furtherConditionLimits } from "../rules.ts";
import { Description, Id, InstantOut } from "./fields.ts";
import { defineRoute } from "./route.ts";

/** Audiences of a project, their lists, and their history. */
const AudienceUse = z.strictObject({
  flag_id: Id,
  flag_key: z.string(),
  environment_id: Id,
});

export const Audience = z.strictObject({
  key: z.string(),
  name: z.string(),
  description: z.string(),
  match: Match.describe(
    "Alternatives of conditions. A user is in the audience if all conditions of one alternative hold",
  ),
  list: z
    .strictObject({ attribute: z.string(), count: z.int().min(0) })
    .nullable()
    .describe(
      "Users by the text of one attribute, who are in the audience too. The response contains their number, never the entries",
    ),
  version: z.int(),
  created_at: InstantOut,
  updated_at: InstantOut,
  used_by: z.array(AudienceUse).describe("The states whose rules use the audience"),
});
export type Audience = z.infer<typeof Audience>;

export const CreateAudience = z.strictObject({
  key: FlagKey,
  name: Name,
  description: Description.optional(),
  match: MatchInput.optional(),
});
export type CreateAudience = z.infer<typeof CreateAudience>;

export const UpdateAudience = z.strictObject({
  name: Name.optional(),
  description: Description.optional(),
  match: MatchInput.optional(),
  list: z.null().optional().describe("Null removes the list. Use `PUT …/list` to set it"),
});
export type UpdateAudience = z.infer<typeof UpdateAudience>;

export const ChangeAudienceList = z.strictObject({
  add: z.array(ListEntry).max(maxChangedEntries).optional(),
  remove: z.array(ListEntry).max(maxChangedEntries).optional(),
});
export type ChangeAudienceList = z.infer<typeof ChangeAudienceList>;

export const AudienceHistoryEntry = z.strictObject({
  version: z.int(),
  change: AudienceChange,
  name: z.string(),
  description: z.string(),
  match: Match.optional().describe("Absent if the change concerned only the list"),
  list: z.strictObject({ attribute: z.string(), count: z.int().min(0) }).nullable(),
  added: z.int().optional().describe("Number of added entries of the list"),
  removed: z.int().optional().describe("Number of removed entries of the list"),
  changed_at: InstantOut,
  changed_by: Id.describe("The user who made the change; the nil UUID for the operator"),
});
export type AudienceHistoryEntry = z.infer<typeof AudienceHistoryEntry>;

const audiences = "/api/v1/audiences";
const audience = `${audiences}/:key`;
const list = `${audience}/list`;
const Params = z.strictObject({ key: FlagKey });
const shared = { service: "management", access: "server_key", tag: "Audiences" } as const;
const success = { status: 200, description: "The audience", body: Audience } as const;
const matchExample = [
  [{ attribute: "plan", operator: "equals" as const, value: "beta" }],
  [{ attribute: "email", operator: "ends_with" as const, value: "@example.com" }],
];

/** Requirements on `match` beyond JSON Schema. */
const furtherMatchLimits = `Some conditions match the schema and are rejected with 400. ${furtherConditionLimits} All patterns of \`match\` together have a maximum size too.`;

export const createAudience = defineRoute({
  ...shared,
  operationId: "createAudience",
  method: "POST",
  path: audiences,
  summary: "Create an audience",
  description: `An audience without \`match\` and without a list contains nobody. A project has at most 1,000 audiences. An \`environment_only\` key cannot change audiences. ${furtherMatchLimits}`,
  body: CreateAudience,
  example: { key: "beta", name: "Beta users", match: matchExample },
  idempotent: true,
  success: { ...success, status: 201 },
  errors: ["CONFLICT_001"],
});

export const listAudiences = defineRoute({
  ...shared,
  operationId: "listAudiences",
  method: "GET",
  path: audiences,
  summary: "List the audiences of the project",
  description: "In the order of their keys.",
  success: {
    status: 200,
    description: "All audiences",
    body: z.strictObject({ audiences: z.array(Audience) }),
  },
});

export const getAudience = defineRoute({
  ...shared,
  operationId: "getAudience",
  method: "GET",
  path: audience,
  params: Params,
  summary: "Read an audience",
  description:
    "The ETag depends on everything in the response. A change compares only the version in it, so the ETag of a read can be sent with a change.",
  revalidated: true,
  success,
});

export const updateAudience = defineRoute({
  ...shared,
  operationId: "updateAudience",
  protectable: true,
  method: "PATCH",
  path: audience,
  params: Params,
  summary: "Change an audience",
  description: `The change reaches every flag that uses the audience. \`POST …/preview\` lists these flags before. ${furtherMatchLimits}`,
  body: UpdateAudience,
  example: { match: matchExample },
  conditional: true,
  success,
  errors: ["CONFLICT_001", "CONFLICT_003"],
});

export const deleteAudience = defineRoute({
  ...shared,
  operationId: "deleteAudience",
  method: "DELETE",
  path: audience,
  params: Params,
  summary: "Delete an audience",
  description:
    "An audience that rules use cannot be deleted: 409 names the flags and environments.",
  conditional: true,
  success: { status: 204, description: "The audience no longer exists" },
  errors: ["CONFLICT_001", "CONFLICT_003"],
});

export const getAudienceHistory = defineRoute({
  ...shared,
  operationId: "getAudienceHistory",
  method: "GET",
  path: `${audience}/history`,
  params: Params,
  summary: "Read the history of an audience, newest first",
  description:
    "Each entry is the audience after one change. Of the list it contains numbers, never the entries. To read older entries, set `before` to the version of the last entry that you have.",
  query: z.strictObject({
    limit: z.int().min(1).max(100).optional(),
    before: z.int().min(1).optional(),
  }),
  success: {
    status: 200,
    description: "The entries, 20 by default",
    body: z.strictObject({
      history: z.array(AudienceHistoryEntry),
      next_before: z.int().nullable(),
    }),
  },
});

export const previewAudience = defineRoute({
  ...shared,
  operationId: "previewAudience",
  method: "POST",
  path: `${audience}/preview`,
  params: Params,
  summary: "List the flags that a change of an audience would affect",
  description: "The new `match` is checked like that of a change, and not stored.",
  body: z.strictObject({ match: MatchInput }),
  example: { match: matchExample },
  success: {
    status: 200,
    description: "The states whose rules use the audience",
    body: z.strictObject({
      flags: z.array(AudienceUse.extend({ environment_name: z.string(), enabled: z.boolean() })),
    }),
  },
});

export const replaceAudienceList = defineRoute({
  ...shared,
  operationId: "replaceAudienceList",
  protectable: true,
  method: "PUT",
  path: list,
  params: Params,
  query: z.strictObject({
    attribute: AttributeName.optional().describe(
      "The attribute that is compared. Default: `id`, also if the current list has another one",
    ),
    header: z.enum(["present", "absent"]).optional().describe("`present` skips the first line"),
  }),
  summary: "Replace the list of an audience by an uploaded one",
  description:
    "Send the entries as `text/csv`, of which the first column counts, or as `application/x-ndjson`, one JSON text in each line: at most 1,000,000 entries of 1 to 512 characters, and 64 MiB. Entries are compared exactly, with case. The body is read as a stream. The list is replaced as a whole, or not at all: a line that is not valid is rejected and named. Repeated entries count once. Each upload sets the attribute too: without `attribute`, a list of another attribute, such as `company`, becomes one of `id`.",
  streamedBody: {
    "text/csv": "user-42\nuser-43\n",
    "application/x-ndjson": '"user-42"\n"user-43"\n',
  },
  conditional: true,
  success,
  errors: ["CONFLICT_001", "CONFLICT_003"],
});

export const changeAudienceList = defineRoute({
  ...shared,
  operationId: "changeAudienceList",
  protectable: true,
  method: "PATCH",
  path: list,
  params: Params,
  summary: "Add entries to the list of an audience, and remove others",
  description:
    "At most 10,000 entries together. An entry in both `add` and `remove` is rejected with 400. Adding an entry that the list has, and removing one that it lacks, changes nothing. Without a list, one of the attribute `id` is created.",
  body: ChangeAudienceList,
  example: { add: ["user-42"], remove: ["user-7"] },
  conditional: true,
  idempotent: true,
  success,
  errors: ["CONFLICT_001", "CONFLICT_003"],
});

export const lookUpAudienceMember = defineRoute({
  ...shared,
  operationId: "lookUpAudienceMember",
  method: "POST",
  path: `${list}/lookup`,
  params: Params,
  summary: "Look up one entry of the list of an audience",
  description: "The entry is in the body, because paths are logged.",
  body: z.strictObject({ member: ListEntry }),
  example: { member: "user-42" },
  success: {
    status: 200,
    description: "Whether the list has the entry",
    body: z.strictObject({ member: z.boolean() }),
  },
});
