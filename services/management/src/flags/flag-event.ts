import {
  type EventName,
  type FlagEvent,
  inSchemaOrder,
  type StateInEvent,
} from "@halyard/contracts";
import type { Flag, FlagEnvironment, FlagState } from "./flag.ts";
import type { Occasion } from "./occasion.ts";

/** The domain event of a change, with all that a consumer needs to know. */
export function flagEvent(
  event: EventName,
  about: {
    flag: Flag;
    environment: FlagEnvironment;
    state: FlagState;
    before: FlagState | null;
    changes?: FlagEvent["changes"];
    at: Date;
  },
  occasion: Occasion,
): FlagEvent {
  const { flag, environment } = about;
  return {
    id: occasion.newId(),
    event,
    timestamp: about.at.toISOString(),
    version: flag.version,
    organization_id: flag.organizationId,
    project_id: flag.projectId,
    flag: {
      id: flag.id,
      key: flag.key,
      name: flag.name,
      description: flag.description,
      type: flag.type,
    },
    environment: { id: environment.id, name: environment.name },
    state: stateInEvent(about.state),
    state_before: about.before === null ? null : stateInEvent(about.before),
    ...(about.changes === undefined ? {} : { changes: about.changes }),
    triggered_by: { id: occasion.actor.id, email: occasion.actor.email },
    cause: occasion.cause,
  };
}

export function stateInEvent(state: FlagState): StateInEvent {
  return {
    enabled: state.enabled,
    rollout_percentage: state.rolloutPercentage,
    targeting_rules: inSchemaOrder(state.targetingRules),
  };
}
