import { z } from "zod";
import { compileCheck } from "./json-schema.ts";
import { type ServiceName, serviceNames } from "./service-names.ts";

/** A follower of a stream: reading it for the first time, with everything in it, or no longer with everything. */
export const followerStates = ["starting", "current", "stale"] as const;

/**
 * The state of one process, sent over core NATS. Management shows it to the operator and decides nothing by it. A
 * status may be lost, because each one replaces the previous status of the process.
 */
export const ProcessStatus = z.object({
  id: z.uuid(),
  version: z.string().regex(/^[\w.+-]{1,64}$/),
  started_at: z.string().max(40).meta({ format: "date-time" }),
  followers: z
    .array(
      z.object({
        stream: z.string().regex(/^[\w-]{1,64}$/),
        state: z.enum(followerStates),
        /** Time since the follower was last current; 0 in every other state than `stale`. */
        stale_seconds: z.int().min(0),
      }),
    )
    .max(20),
});
export type ProcessStatus = z.infer<typeof ProcessStatus>;

export const checkProcessStatus = compileCheck(ProcessStatus);

const prefix = "process.status.";

export const processStatuses = {
  /**
   * Subjects of core NATS; no stream stores them. Each service may publish only its own, so the subject proves which
   * service a process belongs to.
   */
  subjectOf: (service: ServiceName) => prefix + service,
  everySubject: `${prefix}*`,
  /** Returns the service of a subject; undefined for a service of a later release. */
  serviceOf: (subject: string): ServiceName | undefined =>
    serviceNames.find((service) => subject === prefix + service),
  intervalMs: 1_000,
  /** Room for several times the members of this release. A larger message is not parsed. */
  maxBytes: 8 * 1024,
} as const;
