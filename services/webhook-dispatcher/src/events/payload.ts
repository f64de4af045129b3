import type { FlagEvent, WebhookPayload } from "@halyard/contracts";

/** What customers' systems are told of an event; the fields in the order of their documentation. */
export function payloadOf(event: FlagEvent): WebhookPayload {
  const { flag, environment, triggered_by: actor, state, changes } = event;
  return {
    event: event.event,
    timestamp: event.timestamp,
    flag: { id: flag.id, key: flag.key, name: flag.name, enabled: state.enabled },
    environment: { id: environment.id, name: environment.name },
    triggered_by: { id: actor.id, email: actor.email },
    ...(event.event === "flag_state.updated" ? { state } : {}),
    ...(event.event === "flag.updated" && changes !== undefined ? { changes } : {}),
  };
}
