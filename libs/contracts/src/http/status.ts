import { z } from "zod";
import { followerStates } from "../process-status.ts";
import { serviceNames } from "../service-names.ts";
import { Id, InstantOut } from "./fields.ts";
import { defineRoute } from "./route.ts";

const Milliseconds = z.number().min(0).nullable();

const example = {
  nats: { connected: true },
  processes: [
    {
      service: "sdk-edge",
      id: "5b0f6f0e-9d2c-4c55-8a6e-2f4f3f0c9a17",
      version: "0.1.0",
      started_at: "2027-01-31T09:00:00.000Z",
      state: "current",
      stale_seconds: 0,
      stale_streams: [],
    },
  ],
  propagation: {
    recent: [{ committed_at: "2027-01-31T09:30:00.000Z", applied_ms: 12.5 }],
    median_ms: 12.5,
    p99_ms: 12.5,
  },
  dead_letters: {
    count: 1,
    newest: [
      {
        subject: "usage.recorded",
        reason: "failed 5 times: PostgresError 23514",
        at: "2027-01-31T09:15:00.000Z",
      },
    ],
  },
};

export const SystemStatus = z
  .strictObject({
    nats: z.strictObject({ connected: z.boolean() }),
    processes: z
      .array(
        z.strictObject({
          service: z.enum(serviceNames),
          id: Id.describe("Differs after every start"),
          version: z.string(),
          started_at: InstantOut,
          state: z
            .enum(followerStates)
            .describe(
              "`stale` if the process no longer has everything in a stream that it follows, `starting` if it has not read one of them yet",
            ),
          stale_seconds: z.int().min(0).describe("The largest value of all followed streams"),
          stale_streams: z.array(z.string()).describe("Followed streams that are stale"),
        }),
      )
      .describe(
        "Processes that have reported within about five seconds, by service and start; at most 200 of each service. While NATS is disconnected, those known before. The gateway does not report, because it does not use NATS",
      ),
    propagation: z
      .strictObject({
        recent: z
          .array(
            z.strictObject({
              committed_at: InstantOut,
              applied_ms: Milliseconds.describe("`null`: not applied by every edge in 500 ms"),
            }),
          )
          .describe("Newest first, at most 100"),
        median_ms: Milliseconds.describe("`null` without changes, or if it is above 500 ms"),
        p99_ms: Milliseconds.describe("`null` without changes, or if it is above 500 ms"),
      })
      .describe(
        "Time from the commit of a change until every live edge had reported that it applies it, for the last requests to this management process. Changes without a live edge are left out",
      ),
    dead_letters: z
      .strictObject({
        count: z.int().min(0),
        newest: z
          .array(
            z.strictObject({
              subject: z.string().describe("Subject of the original message"),
              reason: z.string().nullable(),
              at: InstantOut,
            }),
          )
          .describe("Newest first, at most 20, without contents"),
      })
      .nullable()
      .describe("`null`: NATS did not respond in time"),
  })
  .meta({ examples: [example] });
export type SystemStatus = z.infer<typeof SystemStatus>;

export const getStatus = defineRoute({
  service: "management",
  access: "operator",
  tag: "Operations",
  operationId: "getStatus",
  method: "GET",
  path: "/api/v1/status",
  summary: "Read the state of all processes, of propagation and of dead letters",
  description:
    "Responds within a second, also while NATS or PostgreSQL is unavailable. Each management process answers from its own memory, and knows nothing from before its start.",
  success: { status: 200, description: "The state of the installation", body: SystemStatus },
});
