import { isDeepStrictEqual } from "node:util";
import {
  type CreateFlag,
  type FlagEvent,
  type FlagEventName,
  type FlagSettings,
  maxTags,
  type State,
  type StoredVariations,
  type UpdateFlags,
} from "@halyard/contracts";
import { createProblem, isProblem, type Problem } from "@halyard/http";
import type { ChangeContext } from "../access/change-context.ts";
import { type AuditEntry, auditEntry } from "../audit/audit-log.ts";
import { entryToPublish, eventToPublish, type OutboxMessage } from "../outbox/outbox-message.ts";
import {
  type Content,
  changedContent,
  type Decision,
  differingMembers,
  type Flag,
  type FlagEnvironment,
  type FlagInEnvironment,
  flagEntry,
  historyEntry,
  initialState,
  requestedSettings,
  type Settings,
  type StoredState,
  settingsOf,
} from "./flag.ts";
import type { WithCheckedRules } from "./targeting-rules.ts";
import { checkVariations, shortVariations, type WithStoredVariations } from "./variations.ts";

/**
 * Decides the creation of a flag. The flag exists in every environment of the project immediately. The requested state
 * applies to one environment, and all others get the initial state. One event is published, independent of the number
 * of environments.
 */
export function decideCreate(
  scope: {
    organizationId: string;
    projectId: string;
    environments: readonly FlagEnvironment[];
    /** The environment that the requested state applies to. */
    environment: FlagEnvironment;
  },
  request: WithStoredVariations<WithCheckedRules<CreateFlag>>,
  context: ChangeContext,
): (Decision & { state: StoredState }) | Problem {
  const at = context.now;
  const { value_type: valueType = "boolean" } = request;
  const unusable = checkVariations(valueType, request.variations);
  if (unusable !== undefined) return unusable;
  const flag: Flag = {
    id: context.newId(),
    organizationId: scope.organizationId,
    projectId: scope.projectId,
    key: request.key,
    name: request.name,
    description: request.description ?? "",
    type: request.type ?? "release",
    valueType,
    variations: request.variations ?? null,
    variationsVersion: null,
    variationsChangedAt: null,
    tags: [],
    owner: null,
    ...requestedSettings(request),
    archivedAt: null,
    version: 1,
    lastEventAt: at,
    createdAt: at,
    updatedAt: at,
  };
  const states = scope.environments.map((environment) => initialState(flag, environment.id));
  const initial = initialState(flag, scope.environment.id);
  // A new flag has no earlier buckets to keep.
  const { serve: _, ...unserved } = initial.content;
  const before = request.serve === undefined ? initial.content : unserved;
  const content = changedContent(flag, before, request, context);
  if (isProblem(content)) return content;
  const state: StoredState = { ...initial, content };
  const all = states.map((other) => (other.environmentId === state.environmentId ? state : other));
  const event = flagEvent(
    "flag.created",
    { flag, environment: scope.environment, state, before: null, at },
    context,
  );
  const after = { ...settingsOf(flag), ...typeAudit(flag), ...state.content };
  return {
    flag,
    state,
    states: all,
    history: all.map((each) => historyEntry(each, context)),
    audit: [
      flagAudit(context, flag, {
        environmentId: state.environmentId,
        action: "created",
        before: null,
        after,
      }),
    ],
    messages: [
      eventToPublish({ ...event, ...typeInEvent(flag) }),
      ...all.map((each) => entryToPublish(flagEntry(flag, each))),
    ],
  };
}

/** A change of a flag: new settings, the whole state after the change, and new variations. */
type Requested = FlagSettings & {
  content: Content;
  variations?: StoredVariations | undefined;
  /** The states in all environments, if the variations change. Their snapshot entries contain the variations. */
  states?: readonly StoredState[] | undefined;
};

/**
 * Decides a change to the settings of a flag, to its state in one environment, or to both. Returns "unchanged" if no
 * requested value differs from the current one; then there is no audit entry, no event and no new version.
 *
 * A change publishes one to three events, in this order: `flag.updated` for settings, `flag.toggled` for `enabled`, and
 * `flag_state.updated` for all other members of the state.
 */
export function decideChange(
  current: { flag: Flag; state: StoredState; environment: FlagEnvironment },
  { content, variations: given, states = [], ...request }: Requested,
  context: ChangeContext,
): (Decision & { state: StoredState }) | "unchanged" {
  const variations = given ?? current.flag.variations;
  const settings = changedSettings(current.flag, request);
  const members = differingMembers(current.state.content, content);
  const changesVariations = !isDeepStrictEqual(variations, current.flag.variations);
  const changesSettings = Object.keys(settings).length > 0 || changesVariations;
  const names = eventNames(changesSettings, members);
  if (names.length === 0) return "unchanged";

  const at = momentAfter(current.flag.lastEventAt, context.now);
  const lastEventAt = new Date(at.getTime() + names.length - 1);
  const version = current.flag.version + 1;
  const changed = { ...current.flag, version, lastEventAt, updatedAt: at };
  const flag: Flag = {
    ...withSettings(changed, settings),
    ...(changesVariations && { variations, variationsVersion: version, variationsChangedAt: at }),
  };
  const stateChanged = members.length > 0;
  const state: StoredState = stateChanged
    ? { ...current.state, content, version, updatedAt: at }
    : current.state;

  const events = names.map((name, index) =>
    flagEvent(
      name,
      {
        flag,
        environment: current.environment,
        state,
        // Two states of the largest size and both lists of variations would exceed the maximum size of a message.
        before: name === "flag.updated" && changesVariations ? null : current.state,
        ...(name === "flag.updated" ? { changes: changesOf(current.flag, flag, settings) } : {}),
        at: new Date(at.getTime() + index),
      },
      context,
    ),
  );
  return {
    flag,
    state,
    states: stateChanged ? [state] : [],
    history: stateChanged ? [historyEntry(state, context)] : [],
    audit: [
      changeAudit(
        context,
        current,
        { flag, state },
        { changesSettings, changesState: stateChanged, changesVariations },
      ),
    ],
    messages: [
      ...events.map(eventToPublish),
      ...entriesOf(flag, state, { stateChanged, states: changesVariations ? states : [] }),
    ],
  };
}

/** Returns the snapshot entries of a change: that of the state, or those of all environments. */
function entriesOf(
  flag: Flag,
  state: StoredState,
  { stateChanged, states }: { stateChanged: boolean; states: readonly StoredState[] },
): OutboxMessage[] {
  const others = states.filter(({ environmentId }) => environmentId !== state.environmentId);
  const published = stateChanged || states.length > 0 ? [state, ...others] : [];
  return published.map((each) => entryToPublish(flagEntry(flag, each)));
}

/**
 * Decides a change to the settings of several flags. Returns the decisions by flag id, without the flags that have the
 * requested settings already.
 */
export function decideSettings(
  flags: readonly FlagInEnvironment[],
  { archived, owner, add_tags: added = [], remove_tags: removed = [] }: UpdateFlags["set"],
  context: ChangeContext,
): Map<string, Decision> | Problem {
  const decisions = new Map<string, Decision>();
  for (const current of flags) {
    const { flag, state } = current;
    const tags = [...new Set([...flag.tags, ...added])].filter((tag) => !removed.includes(tag));
    if (tags.length > maxTags) return tooManyTags(flag);
    const request = { archived, owner, tags, content: state.content };
    const decision = decideChange(current, request, context);
    if (decision !== "unchanged") decisions.set(flag.id, decision);
  }
  return decisions;
}

function tooManyTags({ key }: Flag): Problem {
  return createProblem(
    "VALIDATION_001",
    `/set/add_tags: the flag ${key} would have more than ${maxTags} tags.`,
  );
}

type FlagAndState = { flag: Flag; state: StoredState };

/** Returns the audit entry of a change. A change of settings that also changes a state contains both. */
function changeAudit(
  context: ChangeContext,
  before: FlagAndState,
  after: FlagAndState,
  changes: { changesSettings: boolean; changesState: boolean; changesVariations: boolean },
): AuditEntry {
  const { changesSettings, changesState, changesVariations } = changes;
  const valuesOf = ({ flag, state }: FlagAndState) => ({
    ...(changesSettings && settingsOf(flag)),
    ...(changesVariations && { variations: flag.variations }),
    ...(changesState && state.content),
  });
  return flagAudit(context, after.flag, {
    action: changesSettings ? "settings" : "state",
    environmentId: changesState ? after.state.environmentId : null,
    before: valuesOf(before),
    after: valuesOf(after),
  });
}

/**
 * Returns the time of a change: now, or one millisecond after the previous event if that is later. So the events of a
 * flag have distinct timestamps, in order, even if the clock of this replica is behind.
 */
export function momentAfter(previous: Date, now: Date): Date {
  return new Date(Math.max(now.getTime(), previous.getTime() + 1));
}

/** Returns the requested settings that differ from the current ones. */
export function changedSettings(flag: Flag, request: FlagSettings): Partial<Settings> {
  const current = settingsOf(flag);
  const changed = Object.entries(requestedSettings(request)).filter(
    ([name, value]) => !isDeepStrictEqual(value, current[name as keyof Settings]),
  );
  return Object.fromEntries(changed);
}

/** Returns a flag with changed settings. It is archived at the time of its change. */
function withSettings(flag: Flag, { archived, ...settings }: Partial<Settings>): Flag {
  const changed = { ...flag, ...settings };
  if (archived === undefined) return changed;
  return { ...changed, archivedAt: archived ? flag.updatedAt : null };
}

function eventNames(changesSettings: boolean, members: readonly (keyof State)[]): FlagEventName[] {
  const names: FlagEventName[] = [];
  if (changesSettings) names.push("flag.updated");
  if (members.includes("enabled")) names.push("flag.toggled");
  if (members.some((member) => member !== "enabled")) names.push("flag_state.updated");
  return names;
}

function changesOf(
  before: Flag,
  after: Flag,
  settings: Partial<Settings>,
): NonNullable<FlagEvent["changes"]> {
  const from = settingsOf(before);
  const changes: [string, object][] = Object.entries(settings).map(([name, to]) => [
    name,
    { from: from[name as keyof Settings], to },
  ]);
  if (after.variations !== before.variations)
    changes.push(["variations", { from: shortVariations(before), to: shortVariations(after) }]);
  return Object.fromEntries(changes) as NonNullable<FlagEvent["changes"]>;
}

/**
 * Returns the members of `flag.created` that a typed flag has. They follow the state, because the relay searches an event
 * for its state, and the text of an object could contain the searched one.
 */
function typeInEvent(flag: Flag): Pick<FlagEvent, "value_type" | "variations"> {
  if (flag.variations === null) return {};
  return { value_type: flag.valueType, variations: shortVariations(flag) };
}

/** Returns the members of an audit entry that a typed flag has beside its settings. */
function typeAudit(flag: Flag): { value_type?: string; variations?: unknown } {
  if (flag.variations === null) return {};
  return { value_type: flag.valueType, variations: flag.variations };
}

/**
 * Decides the deletion of a flag in every environment. One event is published, with the last state in the environment
 * of the key. In the snapshot, a tombstone with the next version replaces each state, so that no older value can take
 * effect again. The audit entry contains the state in the environment of the key, like that of the creation. Earlier
 * entries contain the other states.
 */
export function decideDelete(
  current: {
    flag: Flag;
    state: StoredState;
    environment: FlagEnvironment;
    /** The states in all environments of the project. */
    states: readonly StoredState[];
  },
  context: ChangeContext,
): Decision {
  const { state, environment } = current;
  const at = momentAfter(current.flag.lastEventAt, context.now);
  const version = current.flag.version + 1;
  const flag: Flag = { ...current.flag, version, lastEventAt: at, updatedAt: at };
  const event = flagEvent("flag.deleted", { flag, environment, state, before: state, at }, context);
  const deletion = { deleted: true, version, committed_at: at.toISOString() } as const;
  return {
    flag,
    states: [],
    history: [],
    audit: [
      flagAudit(context, flag, {
        environmentId: state.environmentId,
        action: "deleted",
        before: { ...settingsOf(flag), ...typeAudit(flag), ...state.content },
        after: null,
      }),
    ],
    messages: [
      eventToPublish(event),
      ...current.states.map(({ environmentId }) =>
        entryToPublish({
          address: {
            kind: "flag",
            organizationId: flag.organizationId,
            environmentId,
            flagId: flag.id,
          },
          value: deletion,
        }),
      ),
    ],
  };
}

/** Returns the domain event of a change. It contains everything that a consumer needs. */
function flagEvent(
  event: FlagEventName,
  about: {
    flag: Flag;
    environment: FlagEnvironment;
    state: StoredState;
    before: StoredState | null;
    changes?: FlagEvent["changes"];
    at: Date;
  },
  context: ChangeContext,
): FlagEvent {
  const { flag, environment } = about;
  return {
    id: context.newId(),
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
    state: about.state.content,
    state_before: about.before?.content ?? null,
    ...(about.changes === undefined ? {} : { changes: about.changes }),
    triggered_by: { id: context.actor.id, email: context.actor.email },
    cause: context.cause,
  };
}

/** Returns the audit entry of a change to a flag. */
function flagAudit(
  context: ChangeContext,
  flag: Flag,
  change: Pick<AuditEntry, "action" | "before" | "after"> & { environmentId: string | null },
): AuditEntry {
  const { id: flagId, key: flagKey, projectId, updatedAt: changedAt } = flag;
  return auditEntry(context, { projectId, flagId, flagKey, changedAt, ...change });
}
