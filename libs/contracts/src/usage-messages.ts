import { z } from "zod";
import { compileCheck } from "./json-schema.ts";
import { Reader } from "./readers.ts";
import { VariationKey } from "./values.ts";

/**
 * Usage messages. They count requests and evaluations by organization, environment, flag and key, and contain nothing
 * about the users for whom flags are evaluated.
 */
const Uuid = z.uuid();
const Instant = z.string().meta({ format: "date-time" });
const Count = z.int().min(1);

/** Endpoints whose requests count, by the names that metrics use. */
const usageEndpoints = [
  "flags",
  "values",
  "evaluate",
  "stream",
  "ruleset",
  "ruleset_stream",
  "ofrep_flags",
  "ofrep_flag",
  "ofrep_stream",
] as const;
export const UsageEndpoint = z.enum(usageEndpoints);
export type UsageEndpoint = z.infer<typeof UsageEndpoint>;

/**
 * Usage of one environment in one hour, since the edge's previous message.
 *
 * A bulk response counts as one evaluation of each flag. The message counts it once, in `bulk_answers`, so that its
 * size does not grow with the number of flags.
 */
export const EnvironmentUsage = z.object({
  hour: Instant,
  organization_id: Uuid,
  project_id: Uuid,
  environment_id: Uuid,
  /** Includes endpoints of later releases. */
  requests: z
    .object({
      flags: Count.optional(),
      values: Count.optional(),
      evaluate: Count.optional(),
      stream: Count.optional(),
      ofrep_flags: Count.optional(),
      ofrep_flag: Count.optional(),
      ofrep_stream: Count.optional(),
    })
    .catchall(Count),
  bulk_answers: z.int().min(0),
  /** Time of the last bulk response; null without one. */
  bulk_answered_at: Instant.nullable(),
  /** Responses with one flag. `variations` has those with a typed flag by variation, as far as there was room. */
  flags: z.array(
    z.object({
      flag_id: Uuid,
      evaluations: Count,
      evaluated_at: Instant,
      variations: z.record(VariationKey, Count).optional(),
    }),
  ),
});
export type EnvironmentUsage = z.infer<typeof EnvironmentUsage>;

/** `usage.recorded`: the counts of one edge since its previous message. */
export const UsageRecorded = z.object({
  /** Identifies the life of an edge: every start has a new id. */
  edge: Uuid,
  /** Counts from 1 without gaps. With the edge's id, it identifies the message. */
  sequence: z.int().min(1),
  environments: z.array(EnvironmentUsage),
  keys: z.array(z.object({ key_id: z.string(), used_at: Instant })),
});
export type UsageRecorded = z.infer<typeof UsageRecorded>;

/**
 * `evaluations.reported`: evaluations of one environment's flags that an application made, as its SDK reported them.
 * A report is always one message. The body limit of 64 KiB has room for 4,100 flags with counts, and a message with
 * that many is below a third of the 1 MiB that a NATS server accepts by default.
 */
export const EvaluationsReported = z.object({
  /** Identifies the report. A repeated report has the same id, and counts once. */
  report_id: Uuid,
  environment_id: Uuid,
  /** End of the period in which the evaluations were made. */
  evaluated_at: Instant,
  flags: z.array(
    z.object({
      flag_id: Uuid,
      // Evaluations by value, and of a typed flag by variation.
      true: z.int().min(0),
      false: z.int().min(0),
      variations: z.record(VariationKey, z.int().min(0)).optional(),
    }),
  ),
  /** The SDK that reports. */
  reader: Reader.optional(),
});
export type EvaluationsReported = z.infer<typeof EvaluationsReported>;

/**
 * `usage.last_seen`: times of the last use of keys and of the last evaluation of flags, which management returns. The
 * latest time wins, so that repeated and reordered messages do no harm.
 */
export const UsageLastSeen = z.object({
  /** Keys, and sessions of people, whose ids are UUIDs. */
  keys: z.array(z.object({ key_id: z.string(), used_at: Instant })),
  /** Bulk responses. They count for the flags that existed at that time. */
  environments: z.array(z.object({ environment_id: Uuid, evaluated_at: Instant })),
  flags: z.array(z.object({ environment_id: Uuid, flag_id: Uuid, evaluated_at: Instant })),
});
export type UsageLastSeen = z.infer<typeof UsageLastSeen>;

export const checkUsageRecorded = compileCheck(UsageRecorded);
export const checkEvaluationsReported = compileCheck(EvaluationsReported);
export const checkUsageLastSeen = compileCheck(UsageLastSeen);

/** Returns the message id. The broker detects duplicates by it. */
export function usageMessageId({ edge, sequence }: { edge: string; sequence: number }): string {
  return `${edge}.${sequence}`;
}
