import type {
  AudienceEvent,
  AudiencePayload,
  FlagEvent,
  FlagEventName,
  FlagPayload,
  WebhookPayload,
} from "@halyard/contracts";

/** Members of events that no payload contains. */
type Hidden = "id" | "version" | "organization_id" | "project_id" | "state_before" | "cause";

export type ShownFlagEvent = Omit<FlagEvent, Hidden>;
export type ShownAudienceEvent = Omit<AudienceEvent, Hidden>;

/** Returns the body of a delivery. The members have the order of the documentation. */
export function payloadOf(event: ShownFlagEvent): FlagPayload;
export function payloadOf(event: ShownFlagEvent | ShownAudienceEvent): WebhookPayload;
export function payloadOf(event: ShownFlagEvent | ShownAudienceEvent): WebhookPayload {
  return event.event === "audience.updated" ? audiencePayload(event) : flagPayload(event);
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
