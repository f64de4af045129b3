import { z } from "zod";
import { readerFields } from "../readers.ts";
import { Id, IdParam, InstantOut, Limited, UtcDate } from "./fields.ts";
import { defineRoute } from "./route.ts";

export const Usage = z.strictObject({
  plan: z.string(),
  period: z
    .strictObject({ start: InstantOut, end: InstantOut })
    .describe("The calendar month in UTC; `end` is the start of the next one"),
  requests: Limited.describe(
    "Authenticated requests to SDK and OFREP endpoints that no limit rejected",
  ),
  sse_connections: Limited.describe("Open streams on all edges"),
  projects: Limited,
  configuration_bytes: Limited.describe(
    "Bytes of the rules, splits and values of all flags in all environments, as JSON without spaces between tokens",
  ),
});
export type Usage = z.infer<typeof Usage>;

/** Maximum number of days in a response: three months of any length. */
export const maxUsageDays = 92;

export const UsageDays = z.strictObject({
  days: z
    .array(z.strictObject({ date: UtcDate, requests: z.int().min(0) }))
    .describe("Every day of the period, oldest first"),
  known_since: UtcDate.nullable().describe(
    "The first day with stored requests. Earlier days have 0: there were no requests, or their retention has ended. `null` if no requests are stored",
  ),
});
export type UsageDays = z.infer<typeof UsageDays>;

/** Retention of hourly counts, in hours. */
const maxUsageHours = 30 * 24;
export const defaultUsageHours = 24;

export const FlagUsage = z.strictObject({
  flag_id: Id,
  hours: z
    .int()
    .min(1)
    .max(maxUsageHours)
    .describe("Number of hours covered, including the current one"),
  environments: z.array(
    z.strictObject({
      environment_id: Id,
      name: z.string(),
      last_evaluated_at: InstantOut.nullable(),
      evaluations: z.int().min(0).describe("Evaluations within these hours"),
      by_hour: z
        .array(z.strictObject({ hour: InstantOut, evaluations: z.int().min(1) }))
        .describe("Hours with evaluations of the flag, oldest first"),
      variations: z
        .array(z.strictObject({ key: z.string(), evaluations: z.int().min(1) }))
        .optional()
        .describe(
          "Evaluations of a typed flag by variation within these hours, most first: those that SDKs reported, and responses with one flag. Absent if there were none",
        ),
    }),
  ),
});
export type FlagUsage = z.infer<typeof FlagUsage>;

/** Default number of flags in a list by traffic. */
export const defaultTrafficLimit = 20;

export const FlagTraffic = z.strictObject({
  hours: z.int().min(1).max(maxUsageHours),
  since: InstantOut.describe(
    "Beginning of the period: the start of a day in UTC. Later than requested if evaluations are not known for so long",
  ),
  flags: z.array(
    z.strictObject({
      flag_id: Id,
      evaluations: z.int().min(0).describe("Evaluations since `since`"),
      last_evaluated_at: InstantOut.nullable(),
    }),
  ),
});
export type FlagTraffic = z.infer<typeof FlagTraffic>;

const shared = { service: "usage-metering", access: "server_key", tag: "Usage" } as const;

export const getUsage = defineRoute({
  ...shared,
  operationId: "getUsage",
  method: "GET",
  path: "/api/v1/usage",
  summary: "Read the organization's usage and the limits of its plan",
  description:
    "The figures are up to two seconds old. Management requests do not count, and the monthly limit never blocks them.",
  success: { status: 200, description: "Usage and limits", body: Usage },
});

export const listUsageDays = defineRoute({
  ...shared,
  operationId: "listUsageDays",
  method: "GET",
  path: "/api/v1/usage/days",
  summary: "List the organization's requests by day",
  description: `Days are in UTC. The period is at most ${maxUsageDays} days long, and includes \`from\` and \`to\`. \`to\` is today by default, \`from\` the first day of the month of \`to\`. The days of a month add up to \`requests.used\` of \`GET /api/v1/usage\`, unless the operator has restored a backup of the database in this month.`,
  query: z.strictObject({ from: UtcDate.optional(), to: UtcDate.optional() }),
  success: { status: 200, description: "The requests of each day", body: UsageDays },
});

export const getFlagUsage = defineRoute({
  ...shared,
  operationId: "getFlagUsage",
  method: "GET",
  path: "/api/v1/flags/:id/usage",
  params: z.strictObject({ id: IdParam }),
  summary: "Read the evaluations of a flag",
  description: `Counts evaluations by environment and hour, over the last \`hours\` (default ${defaultUsageHours}). A response with all flags counts as one evaluation of each flag. Opening a stream of values counts like such a response; the later events of the stream do not count. An \`environment_only\` key sees its own environment.`,
  query: z.strictObject({
    hours: z.int().min(1).max(maxUsageHours).optional().meta({ default: defaultUsageHours }),
  }),
  success: { status: 200, description: "The evaluations of the flag", body: FlagUsage },
});

/** Period after which a reader without a report is no longer listed, in days. */
export const readerRetentionDays = 7;
/** Maximum number of readers of an environment: those with the latest reports. */
export const maxReaders = 100;

export const Readers = z.strictObject({
  readers: z
    .array(
      z.strictObject({
        ...readerFields,
        last_seen_at: InstantOut.describe("End of the period of its last report"),
      }),
    )
    .describe("The readers with the latest reports first"),
});
export type Readers = z.infer<typeof Readers>;

export const listReaders = defineRoute({
  ...shared,
  operationId: "listReaders",
  method: "GET",
  path: "/api/v1/projects/:projectId/environments/:environmentId/readers",
  params: z.strictObject({ projectId: IdParam, environmentId: IdParam }),
  summary: "List the SDKs that evaluate the flags of an environment",
  description: `SDKs that evaluate in applications and reported usage in the last ${readerRetentionDays} days, by name and version: at most ${maxReaders}. A flag whose \`needs\` has a word that is missing in \`knows\` is not found by that SDK, which returns the application's default. \`last_seen_at\` is up to five minutes old. SDKs that do not send \`sdk\` in their reports are not listed. An \`environment_only\` key can read its own environment only.`,
  success: { status: 200, description: "The readers of the environment", body: Readers },
});

export const listFlagTraffic = defineRoute({
  ...shared,
  operationId: "listFlagTraffic",
  method: "GET",
  path: "/api/v1/usage/flags",
  summary: "List the project's flags by evaluations",
  description: `Counts like \`GET /api/v1/flags/{id}/usage\`, in whole days: the period begins at the start of the day in UTC that contains the first of the \`hours\` (default ${defaultUsageHours}). Evaluations of an earlier day that arrive late, for instance after an outage, can count in the period. Flags without evaluations are included. \`order=least\` lists the least evaluated flags first. Without \`environment_id\`, the numbers are sums over all environments of the project; an \`environment_only\` key sees its own environment. \`limit\` is ${defaultTrafficLimit} by default.`,
  query: z.strictObject({
    hours: z.int().min(1).max(maxUsageHours).optional().meta({ default: defaultUsageHours }),
    environment_id: IdParam.optional(),
    order: z.enum(["most", "least"]).optional().meta({ default: "most" }),
    limit: z.int().min(1).max(1000).optional().meta({ default: defaultTrafficLimit }),
  }),
  success: { status: 200, description: "Flags by evaluations", body: FlagTraffic },
});
