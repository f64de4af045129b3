import { createHash } from "node:crypto";
import type {
  Flag as FlagResource,
  FlagState,
  ListedFlag as ListedFlagResource,
} from "@halyard/contracts";
import {
  type Flag,
  type FlagInEnvironment,
  type ListedFlag,
  type StoredState,
  settingsOf,
} from "./flag.ts";

/**
 * Returns a flag and its state as the API represents them. The time of the last evaluation is not part of the version.
 * Otherwise every evaluation would create a version: no `If-Match` would stay valid long enough to be sent, and
 * versions would not identify changes.
 */
export function flagResource(
  flag: Flag,
  state: StoredState,
  lastEvaluatedAt: Date | null,
): FlagResource {
  return {
    id: flag.id,
    key: flag.key,
    ...settingsOf(flag),
    ...state.content,
    environment_id: state.environmentId,
    version: flag.version,
    created_at: flag.createdAt.toISOString(),
    updated_at: flag.updatedAt.toISOString(),
    last_evaluated_at: lastEvaluatedAt?.toISOString() ?? null,
  };
}

export function resourceOf(found: Omit<FlagInEnvironment, "environment">): FlagResource {
  return flagResource(found.flag, found.state, found.lastEvaluatedAt);
}

export function listedFlagResource(found: ListedFlag): ListedFlagResource {
  const { summaries } = found;
  if (summaries === undefined) return resourceOf(found);
  const environments = summaries.map((state) => ({
    environment_id: state.environmentId,
    ...state.content,
    rule_count: state.ruleCount,
    version: state.version,
    updated_at: state.updatedAt.toISOString(),
  }));
  return { ...resourceOf(found), environments };
}

export function flagStateResource(state: StoredState): FlagState {
  return {
    flag_id: state.flagId,
    environment_id: state.environmentId,
    ...state.content,
    version: state.version,
    updated_at: state.updatedAt.toISOString(),
  };
}

export function pathOf({ id }: Pick<Flag, "id">): string {
  return `/api/v1/flags/${id}`;
}

export function pathOfState(state: Pick<StoredState, "flagId" | "environmentId">): string {
  return `/api/v1/flags/${state.flagId}/environments/${state.environmentId}`;
}

/**
 * Returns the entity tag of a flag for `If-None-Match`: the version and a hash of the resource. The resource also
 * depends on the environment of the key and on evaluations, which do not change the version.
 */
export function readTagOf(resource: FlagResource): string {
  const hash = createHash("sha256").update(JSON.stringify(resource)).digest("base64url");
  return `"${resource.version}-${hash}"`;
}
