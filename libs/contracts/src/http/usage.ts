import { z } from "zod";
import { Id, IdParam, InstantOut } from "./fields.ts";
import { defineRoute } from "./route.ts";

/** A used amount and its limit. */
const Limited = z.strictObject({
  used: z.int().min(0),
  limit: z.int().min(0).nullable().describe("`null`: unlimited"),
});

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
});
export type Usage = z.infer<typeof Usage>;

/** Retention of hourly counts, in hours. */
export const maxUsageHours = 30 * 24;
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
    }),
  ),
});
export type FlagUsage = z.infer<typeof FlagUsage>;

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
