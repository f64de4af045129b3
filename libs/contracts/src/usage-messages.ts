import { z } from "zod";
import { compileCheck } from "./json-schema.ts";

/**
 * What edges tell about use, and what becomes of it. Nothing here is about users: organizations,
 * environments, flags and keys are counted, and nobody can learn from it who asked.
 */
const Uuid = z.uuid();
const Instant = z.string().meta({ format: "date-time" });
const Count = z.int().min(1);

/** The endpoints whose requests count. Each has the name that metrics show. */
export const usageEndpoints = [
  "flags",
  "evaluate",
  "stream",
  "ofrep_flags",
  "ofrep_flag",
  "ofrep_stream",
] as const;
export const UsageEndpoint = z.enum(usageEndpoints);
export type UsageEndpoint = z.infer<typeof UsageEndpoint>;

/**
 * What happened in one environment within one hour, since what the edge told before.
 *
 * An answer with all flags counts for each of them. It is counted once, in `bulk_answers`, so the size of
 * messages does not grow with the number of flags. Edges of release 0.1.0 also counted it in `flags` for flags
 * that were created in this hour.
 */
export const EnvironmentUsage = z.object({
  /** The beginning of the hour. */
  hour: Instant,
  organization_id: Uuid,
  project_id: Uuid,
  environment_id: Uuid,
  /** Endpoints of a later release are counted too. */
  requests: z
    .object({
      flags: Count.optional(),
      evaluate: Count.optional(),
      stream: Count.optional(),
      ofrep_flags: Count.optional(),
      ofrep_flag: Count.optional(),
      ofrep_stream: Count.optional(),
    })
    .catchall(Count),
  bulk_answers: z.int().min(0),
  /** When the last of them was given; null where there was none. */
  bulk_answered_at: Instant.nullable(),
  /** Answers with one flag. */
  flags: z.array(z.object({ flag_id: Uuid, evaluations: Count, evaluated_at: Instant })),
});
export type EnvironmentUsage = z.infer<typeof EnvironmentUsage>;

/** `usage.recorded`: what one edge has counted since its message before. */
export const UsageRecorded = z.object({
  /** One life of one edge: another start is another id. */
  edge: Uuid,
  /** From 1, without gaps. With the edge's id it is the message's own. */
  sequence: z.int().min(1),
  environments: z.array(EnvironmentUsage),
  keys: z.array(z.object({ key_id: z.string(), used_at: Instant })),
});
export type UsageRecorded = z.infer<typeof UsageRecorded>;

/**
 * `usage.last_seen`: when keys were last used and flags last asked for, for management, which shows it.
 * The latest instant wins, so repetitions and disorder do no harm.
 */
export const UsageLastSeen = z.object({
  keys: z.array(z.object({ key_id: z.string(), used_at: Instant })),
  /** Answers about all flags of an environment, those that were there already. */
  environments: z.array(z.object({ environment_id: Uuid, evaluated_at: Instant })),
  flags: z.array(z.object({ environment_id: Uuid, flag_id: Uuid, evaluated_at: Instant })),
});
export type UsageLastSeen = z.infer<typeof UsageLastSeen>;

export const checkUsageRecorded = compileCheck(UsageRecorded);
export const checkUsageLastSeen = compileCheck(UsageLastSeen);

/** The id by which the broker knows a second copy of a message. */
export function usageMessageId({ edge, sequence }: { edge: string; sequence: number }): string {
  return `${edge}.${sequence}`;
}
