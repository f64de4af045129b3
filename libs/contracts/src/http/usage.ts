import { z } from "zod";
import { Id, IdParam, InstantOut } from "./fields.ts";
import { defineRoute } from "./route.ts";

/** What an organization uses of its plan, and which flags are still asked for. */
const Limited = z.strictObject({
  used: z.int().min(0),
  limit: z.int().min(0).nullable().describe("`null`: unlimited"),
});

export const Usage = z.strictObject({
  plan: z.string(),
  period: z
    .strictObject({ start: InstantOut, end: InstantOut })
    .describe("The calendar month, UTC; `end` is the beginning of the next one"),
  requests: Limited.describe(
    "Requests to SDK and OFREP endpoints that were not refused by a limit",
  ),
  sse_connections: Limited.describe("Open streams, on all edges together"),
  projects: Limited,
});
export type Usage = z.infer<typeof Usage>;

/** Hours are kept so long. */
export const maxUsageHours = 30 * 24;
export const defaultUsageHours = 24;

export const FlagUsage = z.strictObject({
  flag_id: Id,
  hours: z
    .int()
    .min(1)
    .max(maxUsageHours)
    .describe("How many hours back this reaches, the present one among them"),
  environments: z.array(
    z.strictObject({
      environment_id: Id,
      name: z.string(),
      last_evaluated_at: InstantOut.nullable(),
      evaluations: z.int().min(0).describe("Within these hours"),
      by_hour: z
        .array(z.strictObject({ hour: InstantOut, evaluations: z.int().min(1) }))
        .describe("Hours in which the flag was asked for, the oldest first"),
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
  summary: "What the organization has used of its plan",
  description:
    "Figures are as of the last second or two. Management requests are not counted, and never blocked by the monthly limit.",
  success: { status: 200, description: "Use and limits", body: Usage },
});

export const getFlagUsage = defineRoute({
  ...shared,
  operationId: "getFlagUsage",
  method: "GET",
  path: "/api/v1/flags/:id/usage",
  params: z.strictObject({ id: IdParam }),
  summary: "How often a flag is asked for",
  description: `By environment and hour, over the last \`hours\` (${defaultUsageHours} unless given). An answer about all flags counts for each of them; opening a stream of values is such an answer, what the stream tells afterwards is not counted. An \`environment_only\` key sees its own environment.`,
  query: z.strictObject({
    hours: z.int().min(1).max(maxUsageHours).optional().meta({ default: defaultUsageHours }),
  }),
  success: { status: 200, description: "Its evaluations", body: FlagUsage },
});
