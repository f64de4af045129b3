import type { EventName, FlagEvent, WebhookPayload } from "@halyard/contracts";

/** The fields of an event that a payload can contain. */
export type ShownEvent = Omit<
  FlagEvent,
  "id" | "version" | "organization_id" | "project_id" | "state_before" | "cause"
>;

/** Returns the body of a delivery. The members have the order of the documentation. */
export function payloadOf(event: ShownEvent): WebhookPayload {
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
  WebhookPayload,
  "event" | "timestamp" | "flag" | "environment" | "triggered_by"
>;

/** Returns the additional members of a payload, by event. */
const ownMembers: { readonly [event in EventName]: (event: ShownEvent) => OwnMembers } = {
  "flag.created": ({ value_type, variations }) =>
    value_type === undefined ? {} : { value_type, variations },
  "flag.updated": ({ changes }) => (changes === undefined ? {} : { changes }),
  "flag.deleted": () => ({}),
  "flag.toggled": () => ({}),
  "flag_state.updated": ({ state }) => ({ state }),
};
