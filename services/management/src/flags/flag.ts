import { isDeepStrictEqual } from "node:util";
import {
  type EntryOf,
  type Flag as FlagResource,
  type FlagSettings,
  type FlagState,
  type FlagType,
  type ListedFlag as ListedFlagResource,
  type State,
  type StateSummary,
  stateMembers,
  stateOf,
  type UpdateFlagState,
} from "@halyard/contracts";
import type { Cause, ChangeContext } from "../access/change-context.ts";
import type { AuditEntry } from "../audit/audit-log.ts";
import type { OutboxMessage } from "../outbox/outbox-message.ts";
import { type CheckedRules, noRules, type WithCheckedRules } from "./targeting-rules.ts";

/** A flag of a project, with the settings that are the same in every environment. */
export type Flag = {
  id: string;
  organizationId: string;
  projectId: string;
  key: string;
  name: string;
  description: string;
  type: FlagType;
  /** In alphabetical order, without duplicates. */
  tags: readonly string[];
  /** The team or person that is responsible for the flag. */
  owner: string | null;
  archivedAt: Date | null;
  /** Counter that every change to the flag or to one of its states increments. */
  version: number;
  /** Timestamp of the newest event of the flag. */
  lastEventAt: Date;
  createdAt: Date;
  updatedAt: Date;
};

/** The settings that requests can change. All environments share them. */
export type Settings = Pick<Flag, "name" | "description" | "type" | "tags" | "owner"> & {
  archived: boolean;
};

export function settingsOf({ name, description, type, tags, owner, archivedAt }: Flag): Settings {
  return { name, description, type, tags, owner, archived: archivedAt !== null };
}

/** Returns the settings of a request as they are stored. */
export function requestedSettings(request: FlagSettings): Partial<Settings> {
  const { name, description, type, tags, owner, archived } = request;
  const requested = {
    name,
    description,
    type,
    tags: tags && [...new Set(tags)].sort(),
    owner: owner?.trim() ?? owner,
    archived,
  };
  return Object.fromEntries(
    Object.entries(requested).filter(([, value]) => value !== undefined),
  ) as Partial<Settings>;
}

/** The members of a state as one value: one column, and one argument of each decision. */
export type Content = Omit<State, "targeting_rules"> & { targeting_rules: CheckedRules };

/** Returns the members whose values differ. */
export const differingMembers = (before: Content, after: Content): (keyof Content)[] =>
  stateMembers.filter((member) => !isDeepStrictEqual(before[member], after[member]));

/** The state of a flag in one environment, as this service stores it. */
export type StoredState = {
  flagId: string;
  environmentId: string;
  content: Content;
  /** Version of the flag at the last change to this state. */
  version: number;
  updatedAt: Date;
};

export type FlagEnvironment = { id: string; name: string };

export type FlagInEnvironment = {
  flag: Flag;
  state: StoredState;
  environment: FlagEnvironment;
  /** Time of the last evaluation in this environment. It is not part of the flag. */
  lastEvaluatedAt: Date | null;
};

/** The state of a flag in one environment without its rules, for lists. */
export type StoredSummary = Pick<StoredState, "environmentId" | "version" | "updatedAt"> & {
  content: StateSummary;
  ruleCount: number;
};

/** A flag of a list, with the states in the environments that were requested. */
export type ListedFlag = FlagInEnvironment & { summaries?: readonly StoredSummary[] };

/** Address of a flag in one environment of a project. */
export type FlagScope = { projectId: string; flagId: string; environmentId: string };

/** The content of a state that was never changed. */
export const initialContent: Content = {
  enabled: false,
  rollout_percentage: 100,
  targeting_rules: noRules,
};

/** Names of the id in contexts. `bucket_by` with one of them is the default. */
const idNames: ReadonlySet<unknown> = new Set(["id", "user_id", "targetingKey"]);

/**
 * Returns the content with the requested values, as JSON stores them: `-0` becomes `0`. A member that is null is absent
 * from the stored content.
 */
export function changedContent(
  content: Content,
  request: WithCheckedRules<UpdateFlagState>,
): Content {
  const requested = JSON.parse(JSON.stringify(request)) as typeof request;
  if (idNames.has(requested.bucket_by)) requested.bucket_by = null;
  const members = Object.entries({ ...content, ...requested });
  return stateOf(Object.fromEntries(members.filter(([, value]) => value !== null)) as Content);
}

/** Returns the state of a flag in an environment before its first change there. */
export function initialState(
  flag: Pick<Flag, "id" | "version" | "createdAt">,
  environmentId: string,
  at = flag.createdAt,
): StoredState {
  return {
    flagId: flag.id,
    environmentId,
    content: initialContent,
    version: flag.version,
    updatedAt: at,
  };
}

/** The result of a change, decided before anything is written. */
export type Decision = {
  flag: Flag;
  /** The new and changed states. */
  states: readonly StoredState[];
  history: readonly HistoryEntry[];
  audit: readonly AuditEntry[];
  messages: readonly OutboxMessage[];
};

/** The state of a flag in one environment after a change. */
export type HistoryEntry = {
  id: string;
  flagId: string;
  environmentId: string;
  content: Content;
  changeType: Cause;
  changedBy: string;
  changedAt: Date;
};

/** Returns the snapshot entry of a flag in one environment, which edges evaluate. */
export function flagEntry(
  flag: { id: string; organizationId: string; projectId: string; key: string },
  state: { environmentId: string; content: State; version: number; updatedAt: Date },
): EntryOf<"flag"> {
  const { organizationId } = flag;
  const { environmentId } = state;
  return {
    address: { kind: "flag", organizationId, environmentId, flagId: flag.id },
    value: {
      kind: "flag",
      organization_id: organizationId,
      project_id: flag.projectId,
      environment_id: environmentId,
      flag_id: flag.id,
      key: flag.key,
      ...state.content,
      version: state.version,
      committed_at: state.updatedAt.toISOString(),
    },
  };
}

/** Returns the history entry of a change to a state. */
export function historyEntry(
  state: StoredState,
  context: Pick<ChangeContext, "cause" | "newId"> & { actor: { id: string } },
): HistoryEntry {
  return {
    id: context.newId(),
    flagId: state.flagId,
    environmentId: state.environmentId,
    content: state.content,
    changeType: context.cause,
    changedBy: context.actor.id,
    changedAt: state.updatedAt,
  };
}

/**
 * Returns a flag and its state as the API represents them. The time of the last evaluation is not part of the version.
 * Otherwise every evaluation would create a version: no `If-Match` would stay valid long enough to be sent, and
 * versions would not identify changes.
 */
export function flagResource({
  flag,
  state,
  lastEvaluatedAt,
}: Omit<FlagInEnvironment, "environment">): FlagResource {
  return {
    id: flag.id,
    key: flag.key,
    name: flag.name,
    description: flag.description,
    type: flag.type,
    tags: [...flag.tags],
    owner: flag.owner,
    archived_at: flag.archivedAt?.toISOString() ?? null,
    ...state.content,
    environment_id: state.environmentId,
    version: flag.version,
    created_at: flag.createdAt.toISOString(),
    updated_at: flag.updatedAt.toISOString(),
    last_evaluated_at: lastEvaluatedAt?.toISOString() ?? null,
  };
}

export function listedFlagResource(found: ListedFlag): ListedFlagResource {
  const { summaries } = found;
  if (summaries === undefined) return flagResource(found);
  const environments = summaries.map((state) => ({
    environment_id: state.environmentId,
    ...state.content,
    rule_count: state.ruleCount,
    version: state.version,
    updated_at: state.updatedAt.toISOString(),
  }));
  return { ...flagResource(found), environments };
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
