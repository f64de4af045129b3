import { z } from "zod";
import { compileCheck } from "./json-schema.ts";
import { RolloutPercentage, TargetingRules } from "./rules.ts";
import { flagEventsStream } from "./streams.ts";

/**
 * Domain events: what happened to a flag, with all that a consumer needs, so that nobody has to ask
 * back. The subject that an event is published on is its name.
 */
export const EventName = z.enum(flagEventsStream.subjects);
export type EventName = z.infer<typeof EventName>;

export const StateInEvent = z.object({
  enabled: z.boolean(),
  rollout_percentage: RolloutPercentage,
  targeting_rules: TargetingRules,
});
export type StateInEvent = z.infer<typeof StateInEvent>;

const Change = z.object({ from: z.string(), to: z.string() });

export const FlagEvent = z.object({
  /** The message id too: the broker drops a second one, consumers keep it as their unique key. */
  id: z.string(),
  event: EventName,
  /** Strictly increasing per flag over all its events, by at least one millisecond. */
  timestamp: z.string().meta({ format: "date-time" }),
  version: z.int().min(1),
  organization_id: z.string(),
  project_id: z.string(),
  flag: z.object({
    id: z.string(),
    key: z.string(),
    name: z.string(),
    description: z.string(),
    type: z.string(),
  }),
  environment: z.object({ id: z.string(), name: z.string() }),
  /** The state in that environment after the change; before a deletion, the last one. */
  state: StateInEvent,
  state_before: StateInEvent.nullable(),
  /** Settings that changed (`flag.updated` only). */
  changes: z.record(z.string(), Change).optional(),
  triggered_by: z.object({ id: z.string(), email: z.string() }),
  cause: z.enum(["manual", "scheduled", "rollback"]),
});
export type FlagEvent = z.infer<typeof FlagEvent>;

export const checkFlagEvent = compileCheck(FlagEvent);
