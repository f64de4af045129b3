import { isDeepStrictEqual } from "node:util";
import {
  type EntryOf,
  type Flag as FlagResource,
  type FlagSettings,
  type FlagState,
  type FlagType,
  type ListedFlag as ListedFlagResource,
  type Protection,
  type State,
  type StateSummary,
  type StoredVariations,
  stateMembers,
  stateOf,
  type UpdateFlagState,
  type ValueType,
} from "@halyard/contracts";
import { needsOf } from "@halyard/evaluation";
import { isProblem, type Problem } from "@halyard/http";
import type { Cause, ChangeContext } from "../access/change-context.ts";
import type { AuditEntry } from "../audit/audit-log.ts";
import type { OutboxMessage } from "../outbox/outbox-message.ts";
import { checkFitsFlag, resolveServe } from "./serve.ts";
import {
  type CheckedRules,
  checkContentSize,
  noRules,
  type WithCheckedRules,
} from "./targeting-rules.ts";
import { checkEntrySize, variationsResource } from "./variations.ts";

/** A flag of a project, with the settings that are the same in every environment. */
export type Flag = {
  id: string;
  organizationId: string;
  projectId: string;
  key: string;
  name: string;
  description: string;
  type: FlagType;
  valueType: ValueType;
  /** The variations of a typed flag; null for a boolean one. */
  variations: StoredVariations | null;
  /** Version and time of the last change of the variations, which the entries of all environments have at least. */
  variationsVersion: number | null;
  variationsChangedAt: Date | null;
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

/** Values in a request that remove a member from a state. Undefined: no request removes the member. */
const removal: Readonly<Record<keyof Content, null | readonly [] | undefined>> = {
  enabled: undefined,
  rollout_percentage: undefined,
  targeting_rules: undefined,
  bucket_by: null,
  bucket_seed: null,
  serve: undefined,
  off_variation: undefined,
  requires: [],
};

/** Returns the members of a request that would change one content to another. */
export const patchOf = (before: Content, after: Content): Partial<Content> & object =>
  Object.fromEntries(
    differingMembers(before, after).map((name) => [
      name,
      after[name] === undefined ? removal[name] : after[name],
    ]),
  );

/** The state of a flag in one environment, as this service stores it. */
export type StoredState = {
  flagId: string;
  environmentId: string;
  content: Content;
  /** Version of the flag at the last change to this state. */
  version: number;
  updatedAt: Date;
};

/** An environment of a flag, with its protection and the time at which that began. */
export type FlagEnvironment = {
  id: string;
  name: string;
  protection: Protection | null;
  protectedAt: Date | null;
};

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

/** The content of a boolean flag's state that was never changed. */
export const initialContent: Content = {
  enabled: false,
  rollout_percentage: 100,
  targeting_rules: noRules,
};

/**
 * Returns the content of a state that was never changed. A typed flag serves its first variation. Off is the last one
 * at this moment, so that a variation that is added later changes no value.
 */
function initialContentOf({ variations }: Pick<Flag, "variations">): Content {
  const first = variations?.at(0);
  if (variations === null || first === undefined) return initialContent;
  const off = variations.length > 1 ? (variations.at(-1)?.key ?? null) : null;
  return { ...initialContent, serve: { variation: first.key }, off_variation: off };
}

/** Names of the id in contexts. `bucket_by` with one of them is the default. */
const idNames: ReadonlySet<unknown> = new Set(["id", "user_id", "targetingKey"]);

/** The members of a state that a request changes, whose rules `checkRules` has accepted. */
export type RequestedContent = WithCheckedRules<UpdateFlagState>;

/**
 * Returns the content with the requested values, as JSON stores them: `-0` becomes `0`. Returns a problem for what does
 * not fit the flag. `parent` is the JSON pointer to the request.
 */
export function changedContent(
  flag: Pick<Flag, "valueType" | "variations">,
  content: Content,
  request: RequestedContent,
  { newId, parent = "" }: { newId: () => string; parent?: string },
): Content | Problem {
  const members = stateMembers.filter((name) => request[name] !== undefined);
  const given = Object.fromEntries(members.map((name) => [name, request[name]]));
  const requested = JSON.parse(JSON.stringify(given)) as RequestedContent;
  if (idNames.has(requested.bucket_by)) requested.bucket_by = null;
  const problem = checkFitsFlag(flag, requested, parent);
  if (problem !== undefined) return problem;
  const isTyped = flag.variations !== null;
  const resolved = resolveServe(content, requested, { isTyped, newId, parent });
  if (isProblem(resolved)) return resolved;
  const kept = Object.entries({ ...content, ...requested, ...resolved }).filter(
    ([name, value]) => !isDeepStrictEqual(value, removal[name as keyof Content]),
  );
  const stored = stateOf(Object.fromEntries(kept) as Content);
  return checkContentSize(stored, parent) ?? checkEntrySize(flag, [stored]) ?? stored;
}

/** Returns the state of a flag in an environment before its first change there. */
export function initialState(
  flag: Pick<Flag, "id" | "version" | "createdAt" | "variations">,
  environmentId: string,
  at = flag.createdAt,
): StoredState {
  return {
    flagId: flag.id,
    environmentId,
    content: initialContentOf(flag),
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
  flag: EntryFlag,
  state: { environmentId: string; content: State; version: number; updatedAt: Date },
): EntryOf<"flag"> {
  const { organizationId, valueType, variations } = flag;
  const { environmentId } = state;
  const stamp = stampOf(flag, state);
  const needs = needsOf({ ...state.content, value_type: valueType });
  return {
    address: { kind: "flag", organizationId, environmentId, flagId: flag.id },
    value: {
      kind: "flag",
      organization_id: organizationId,
      project_id: flag.projectId,
      environment_id: environmentId,
      flag_id: flag.id,
      key: flag.key,
      ...(variations === null ? {} : { value_type: valueType, variations }),
      ...(needs.length === 0 ? {} : { needs }),
      ...state.content,
      version: stamp.version,
      committed_at: stamp.at.toISOString(),
    },
  };
}

/** The fields of a flag that its snapshot entries contain. */
export type EntryFlag = Pick<Flag, "id" | "organizationId" | "projectId" | "key"> &
  Pick<Flag, "valueType" | "variations" | "variationsVersion" | "variationsChangedAt">;

/** A change of the variations publishes the entry of every environment again, with the version of the flag. */
function stampOf(
  { variationsVersion, variationsChangedAt }: EntryFlag,
  { version, updatedAt }: { version: number; updatedAt: Date },
): { version: number; at: Date } {
  if (variationsVersion === null || variationsVersion <= version || variationsChangedAt === null)
    return { version, at: updatedAt };
  return { version: variationsVersion, at: variationsChangedAt };
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
    value_type: flag.valueType,
    ...(flag.variations === null ? {} : { variations: variationsResource(flag.variations) }),
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

/** Returns a flag of a list, whose variations have values only with `withValues`. */
export function listedFlagResource(
  found: Omit<ListedFlag, "environment">,
  withValues = false,
): ListedFlagResource {
  const whole = withSummaries(found);
  if (whole.variations === undefined || withValues) return whole;
  return { ...whole, variations: whole.variations.map(({ value: _, ...variation }) => variation) };
}

function withSummaries(found: Omit<ListedFlag, "environment">): ListedFlagResource {
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
