import type { CreateFlag } from "@halyard/contracts";
import { entryOf, eventMessage } from "../outbox/outbox-message.ts";
import type { Decision } from "./decision.ts";
import { type Flag, type FlagEnvironment, type FlagState, initialSettings } from "./flag.ts";
import { flagEntry } from "./flag-entry.ts";
import { flagEvent } from "./flag-event.ts";
import type { Occasion } from "./occasion.ts";
import { auditEntry, auditedSettings, auditedState, historyEntry } from "./records.ts";

/**
 * A new flag. It exists in every environment of the project at once; what the request says of its
 * state is meant for one of them. One event tells of it, whatever the number of environments.
 */
export function decideCreate(
  place: {
    organizationId: string;
    projectId: string;
    environments: readonly FlagEnvironment[];
    /** The one that the request's state is for. */
    environment: FlagEnvironment;
  },
  request: CreateFlag,
  occasion: Occasion,
): Decision & { state: FlagState } {
  const at = occasion.now;
  const flag: Flag = {
    id: occasion.newId(),
    organizationId: place.organizationId,
    projectId: place.projectId,
    key: request.key,
    name: request.name,
    description: request.description ?? "",
    type: request.type ?? "release",
    version: 1,
    lastEventAt: at,
    createdAt: at,
    updatedAt: at,
  };
  const states = place.environments.map((environment) => initialState(flag, environment.id));
  const state: FlagState = {
    ...initialState(flag, place.environment.id),
    enabled: request.enabled ?? initialSettings.enabled,
    rolloutPercentage: request.rollout_percentage ?? initialSettings.rolloutPercentage,
    targetingRules: request.targeting_rules ?? initialSettings.targetingRules,
  };
  const all = states.map((initial) =>
    initial.environmentId === state.environmentId ? state : initial,
  );
  const event = flagEvent(
    "flag.created",
    { flag, environment: place.environment, state, before: null, at },
    occasion,
  );
  const after = { ...auditedSettings(flag), ...auditedState(state) };
  return {
    flag,
    state,
    states: all,
    history: all.map((each) => historyEntry(each, occasion)),
    audit: [
      auditEntry(
        "created",
        { flag, environmentId: state.environmentId, before: null, after, at },
        occasion,
      ),
    ],
    messages: [eventMessage(event), ...all.map((each) => entryOf(flagEntry(flag, each)))],
  };
}

/** The state that a flag has in an environment before anybody has set it there. */
export function initialState(
  flag: Pick<Flag, "id" | "version" | "createdAt">,
  environmentId: string,
  at = flag.createdAt,
): FlagState {
  return {
    flagId: flag.id,
    environmentId,
    ...initialSettings,
    version: flag.version,
    updatedAt: at,
  };
}
