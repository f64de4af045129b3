import type {
  AudienceEvent,
  AudiencePayload,
  ChangeRequestEvent,
  ChangeRequestPayload,
  FlagEvent,
  FlagEventName,
  FlagPayload,
  ProtectionEvent,
  ProtectionPayload,
  WebhookPayload,
} from "@halyard/contracts";
import { changeRequestText, protectionText } from "./event-texts.ts";

/** Members of events that no payload contains. */
type Hidden = "id" | "version" | "organization_id" | "project_id" | "state_before" | "cause";

export type ShownFlagEvent = Omit<FlagEvent, Hidden>;
export type ShownAudienceEvent = Omit<AudienceEvent, Hidden>;
export type ShownChangeRequestEvent = Omit<ChangeRequestEvent, Exclude<Hidden, "cause">>;
export type ShownProtectionEvent = Omit<ProtectionEvent, Hidden>;
type ShownEvent =
  | ShownFlagEvent
  | ShownAudienceEvent
  | ShownChangeRequestEvent
  | ShownProtectionEvent;

/** Returns the body of a delivery. The members have the order of the documentation. */
export function payloadOf(event: ShownFlagEvent): FlagPayload;
export function payloadOf(event: ShownEvent): WebhookPayload;
export function payloadOf(event: ShownEvent): WebhookPayload {
  if ("flag" in event) return flagPayload(event);
  if ("audience" in event) return audiencePayload(event);
  return "change_request" in event ? changeRequestPayload(event) : protectionPayload(event);
}

function audiencePayload(event: ShownAudienceEvent): AudiencePayload {
  const { audience, triggered_by: actor } = event;
  return {
    event: event.event,
    timestamp: event.timestamp,
    audience: { key: audience.key, name: audience.name },
    change: event.change,
    flags: event.flags,
    flags_total: event.flags_total,
    triggered_by: { id: actor.id, email: actor.email },
  };
}

/** `text` follows `triggered_by` directly, because the erasure of a user replaces the address in both. */
function changeRequestPayload(event: ShownChangeRequestEvent): ChangeRequestPayload {
  const { change_request, comment, bypass_reason, triggered_by: actor } = event;
  const { id, title, reason, status, summary, environments } = change_request;
  return {
    event: event.event,
    timestamp: event.timestamp,
    change_request: {
      ...{ id, title, reason, status, summary },
      environments: environments.map((environment) => ({
        id: environment.id,
        name: environment.name,
      })),
    },
    ...(comment !== undefined && { comment }),
    ...(bypass_reason !== undefined && { bypass_reason }),
    triggered_by: { id: actor.id, email: actor.email },
    text: changeRequestText(event),
  };
}

function protectionPayload(event: ShownProtectionEvent): ProtectionPayload {
  const { environment, bypass_reason, triggered_by: actor } = event;
  return {
    event: event.event,
    timestamp: event.timestamp,
    environment: { id: environment.id, name: environment.name },
    protected: event.protected,
    protected_before: event.protected_before,
    ...(bypass_reason !== undefined && { bypass_reason }),
    triggered_by: { id: actor.id, email: actor.email },
    text: protectionText(event),
  };
}

function flagPayload(event: ShownFlagEvent): FlagPayload {
  const { flag, environment, triggered_by: actor, state } = event;
  return {
    event: event.event,
    timestamp: event.timestamp,
    flag: { id: flag.id, key: flag.key, name: flag.name, enabled: state.enabled },
    environment: { id: environment.id, name: environment.name },
    triggered_by: { id: actor.id, email: actor.email },
    ...ownMembers[event.event](event),
  };
}

type OwnMembers = Omit<
  FlagPayload,
  "event" | "timestamp" | "flag" | "environment" | "triggered_by"
>;

/** Returns the additional members of a payload, by event. */
const ownMembers: { readonly [event in FlagEventName]: (event: ShownFlagEvent) => OwnMembers } = {
  "flag.created": ({ value_type, variations }) =>
    value_type === undefined ? {} : { value_type, variations },
  "flag.updated": ({ changes }) => (changes === undefined ? {} : { changes }),
  "flag.deleted": () => ({}),
  "flag.toggled": () => ({}),
  "flag_state.updated": ({ state }) => ({ state }),
};
