import type { Flag as FlagResource, FlagState as FlagStateResource } from "@halyard/contracts";
import type { Flag, FlagState } from "./flag.ts";

/** Flags and states as the API shows them. */
export function flagResource(flag: Flag, state: FlagState): FlagResource {
  return {
    id: flag.id,
    key: flag.key,
    name: flag.name,
    description: flag.description,
    type: flag.type,
    enabled: state.enabled,
    rollout_percentage: state.rolloutPercentage,
    targeting_rules: [...state.targetingRules],
    environment_id: state.environmentId,
    version: flag.version,
    created_at: flag.createdAt.toISOString(),
    updated_at: flag.updatedAt.toISOString(),
    // Evaluations are counted by another service, whose figures are not here yet.
    last_evaluated_at: null,
  };
}

export function flagStateResource(state: FlagState): FlagStateResource {
  return {
    flag_id: state.flagId,
    environment_id: state.environmentId,
    enabled: state.enabled,
    rollout_percentage: state.rolloutPercentage,
    targeting_rules: [...state.targetingRules],
    version: state.version,
    updated_at: state.updatedAt.toISOString(),
  };
}

/** The entity tag of a flag or state: its version, in quotes. */
export function etagOf({ version }: { version: number }): string {
  return `"${version}"`;
}
