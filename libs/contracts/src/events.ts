import { z } from "zod";
import { AudienceChange } from "./audiences.ts";
import { ChangeRequestStatus } from "./change-requests.ts";
import { compileCheck } from "./json-schema.ts";
import { Protection } from "./protection.ts";
import { State } from "./state.ts";
import { flagEventsStream } from "./streams.ts";
import { TypedValue, ValueType } from "./values.ts";

/**
 * Domain events: changes of a flag, with everything that a consumer needs, so that consumers send no further requests.
 * The subject of an event is its name.
 */
export const EventName = z.enum(flagEventsStream.subjects);
export type EventName = z.infer<typeof EventName>;

const audienceEventName = "audience.updated";
const protectionEventName = "environment.protection_changed";
export const ChangeRequestEventName = EventName.extract([
  "change_request.opened",
  "change_request.approved",
  "change_request.rejected",
  "change_request.applied",
  "change_request.bypassed",
  "change_request.stale",
]);
export type ChangeRequestEventName = z.infer<typeof ChangeRequestEventName>;
export const FlagEventName = EventName.exclude([
  audienceEventName,
  protectionEventName,
  ...ChangeRequestEventName.options,
]);
export type FlagEventName = z.infer<typeof FlagEventName>;

/** Variations of a typed flag. A large value is its size and hash. */
const EventVariations = z.array(
  z.object({ key: z.string(), name: z.string().optional(), value: TypedValue }),
);
const Setting = z.union([z.string(), z.boolean(), z.null(), z.array(z.string()), EventVariations]);
const ChangedSetting = z.object({ from: Setting, to: Setting });

export const FlagEvent = z.object({
  /** Also the message id. The broker drops duplicates by it, and consumers use it as a unique key. */
  id: z.string(),
  event: FlagEventName,
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
  /** State in that environment after the change; for a deletion, the last state before it. */
  state: State,
  /** Null for `flag.created`, and for `flag.updated` with changed variations. */
  state_before: State.nullable(),
  /** Changed settings (`flag.updated` only). */
  changes: z.record(z.string(), ChangedSetting).optional(),
  /** Type and variations of a new typed flag (`flag.created` only). */
  value_type: ValueType.optional(),
  variations: EventVariations.optional(),
  triggered_by: z.object({ id: z.string(), email: z.string() }),
  cause: z.enum(["manual", "scheduled", "rollback"]),
});
export type FlagEvent = z.infer<typeof FlagEvent>;

export const checkFlagEvent = compileCheck(FlagEvent);

/** A change of an audience, also its creation, its deletion and a change of its list. It contains no entry of the list. */
export const AudienceEvent = z.object({
  id: z.string(),
  event: z.literal(audienceEventName),
  timestamp: z.string().meta({ format: "date-time" }),
  /** Version of the audience after the change. */
  version: z.int().min(1),
  organization_id: z.string(),
  project_id: z.string(),
  audience: z.object({ key: z.string(), name: z.string(), description: z.string() }),
  change: AudienceChange,
  /** Keys of the flags whose rules use the audience, in alphabetical order. */
  flags: z.array(z.string()).max(100),
  flags_total: z.int().min(0),
  triggered_by: z.object({ id: z.string(), email: z.string() }),
  cause: z.literal("manual"),
});
export type AudienceEvent = z.infer<typeof AudienceEvent>;

export const checkAudienceEvent = compileCheck(AudienceEvent);

/** A step of a change request. A title, a reason and a summary together are smaller than 32 KiB. */
export const ChangeRequestEvent = z.object({
  id: z.string(),
  event: ChangeRequestEventName,
  /** Strictly increasing per change request. */
  timestamp: z.string().meta({ format: "date-time" }),
  /** Counter of the steps of the request. Steps without an event, such as an edit, also increment it. */
  version: z.int().min(1),
  organization_id: z.string(),
  project_id: z.string(),
  change_request: z.object({
    id: z.string(),
    title: z.string(),
    reason: z.string(),
    /** Status after the step. */
    status: ChangeRequestStatus,
    /** The changes in words, one in each line. After 4,000 characters, the number of the others. */
    summary: z.string(),
    /** The environments whose answers the changes affect. */
    environments: z.array(z.object({ id: z.string(), name: z.string() })),
  }),
  /** `change_request.rejected` only. */
  comment: z.string().optional(),
  /** `change_request.bypassed` only. */
  bypass_reason: z.string().optional(),
  triggered_by: z.object({ id: z.string(), email: z.string() }),
  cause: z.enum(["manual", "scheduled"]),
});
export type ChangeRequestEvent = z.infer<typeof ChangeRequestEvent>;

export const checkChangeRequestEvent = compileCheck(ChangeRequestEvent);

/** A protection that can have further members in a later release. */
const EventProtection = z.object(Protection.shape).nullable();

/** A change of the protection of an environment. Null means that the environment is not protected. */
export const ProtectionEvent = z.object({
  id: z.string(),
  event: z.literal(protectionEventName),
  /** Strictly increasing per environment. */
  timestamp: z.string().meta({ format: "date-time" }),
  /** Version of the environment after the change. */
  version: z.int().min(1),
  organization_id: z.string(),
  project_id: z.string(),
  environment: z.object({ id: z.string(), name: z.string() }),
  protected: EventProtection,
  protected_before: EventProtection,
  /** Why the protection was lowered without an approved change request. */
  bypass_reason: z.string().optional(),
  triggered_by: z.object({ id: z.string(), email: z.string() }),
  cause: z.enum(["manual", "scheduled"]),
});
export type ProtectionEvent = z.infer<typeof ProtectionEvent>;

export const checkProtectionEvent = compileCheck(ProtectionEvent);

/** Any event for webhooks. */
export type DomainEvent = FlagEvent | AudienceEvent | ChangeRequestEvent | ProtectionEvent;

/**
 * The operator erased the e-mail address of a user. It follows every event that contains the address, except in a
 * stream that was refilled.
 */
export const UserErased = z.object({
  id: z.string(),
  event: z.literal(flagEventsStream.erasureSubject),
  timestamp: z.string().meta({ format: "date-time" }),
  organization_id: z.string(),
  user_id: z.uuid(),
});
export type UserErased = z.infer<typeof UserErased>;

export const checkUserErased = compileCheck(UserErased);

/**
 * Returns the pseudonym that replaces the erased e-mail address of a user, here and in the audit log. It has the random
 * part of the user's id, so that erased users differ, and every service has the same one.
 */
export const erasedEmail = (userId: string): string => `erased-${userId.slice(-12)}`;
