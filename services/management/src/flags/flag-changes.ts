import { isDeepStrictEqual } from "node:util";
import type { CreateFlag, UpdateFlag, UpdateFlags } from "@halyard/contracts";
import { createProblem, isProblem, type Problem } from "@halyard/http";
import type { ChangeContext, TimeAndIds } from "../access/change-context.ts";
import { maxPageBytes } from "../access/page-bounds.ts";
import type { Change } from "../access/routes.ts";
import { recordAudit } from "../audit/audit-store.ts";
import type { Write } from "../outbox/write.ts";
import { type Approval, approvalNeeded } from "../protection/protection.ts";
import { writeWithinLimit } from "./configuration-limit.ts";
import { decideChange, decideCreate, decideDelete, decideSettings } from "./decide-flag.ts";
import { fillFlag } from "./environment-fills.ts";
import {
  changedContent,
  type Decision,
  type Flag,
  type FlagEnvironment,
  type FlagInEnvironment,
  type FlagScope,
  pathOf,
  type StoredState,
} from "./flag.ts";
import {
  deleteFlag,
  findFlagId,
  holdEnvironments,
  insertFlag,
  insertStatesOfFlag,
  type LockedFlag,
  lockFlag,
  lockFlags,
  lockRows,
  measureStates,
  readStates,
  sumLargestValues,
  updateFlag,
  updateSettings,
  updateVariations,
} from "./flag-store.ts";
import { checkApproved } from "./protected-flag.ts";
import {
  asRequestProblem,
  checkNotRequired,
  checkReferences,
  checkRequiredVariations,
  hasReferences,
  holdNewAudiences,
  lockReferences,
} from "./references.ts";
import type { WithCheckedRules } from "./targeting-rules.ts";
import {
  checkEntrySize,
  checkProjectValues,
  checkUsedVariations,
  checkVariations,
  type WithStoredVariations,
} from "./variations.ts";

/**
 * A write to flags, for a request or for a scheduled change. Each use case in this file decides and writes the decision
 * in one transaction. Use cases that change a flag lock it first.
 */
export type FlagWrite = Write &
  TimeAndIds &
  Pick<Change, "context"> & {
    /** Permits changes of protected environments. */
    approval?: Approval | undefined;
  };

type FlagRequest = {
  scope: FlagScope;
  /** Checks the flag and its state before the change. A problem leaves both unchanged. */
  permit?: (current: FlagAndState) => Problem | undefined;
};

export type FlagAndState = { flag: Flag; state: StoredState };

/** Creates a flag with its states in all environments of the project. */
export async function createFlag(
  write: FlagWrite,
  scope: { organizationId: string; projectId: string; environmentId: string },
  request: WithStoredVariations<WithCheckedRules<CreateFlag>>,
): Promise<FlagAndState | Problem> {
  const environments = await holdEnvironments(write.tx, scope.projectId);
  const environment = environments.find(({ id }) => id === scope.environmentId);
  if (environment === undefined) return noSuchFlag;
  const refers = hasReferences(request);
  if (refers) await lockReferences(write.tx, scope.projectId);
  const context = await write.context();
  const decision = decideCreate({ ...scope, environments, environment }, request, context);
  if (isProblem(decision)) return decision;
  const { flag, state } = decision;
  if (state.content.enabled && environment.protection !== null) return createOff(environment);
  const wrong = refers
    ? await checkReferences(write.tx, { flag, ...state }, state.content)
    : undefined;
  if (wrong !== undefined) return asRequestProblem(wrong);
  if (refers) await holdNewAudiences(write.tx, scope.projectId, { after: state.content });
  if (!(await insertFlag(write.tx, decision.flag))) return keyTaken(write, decision.flag);
  const insertStates = () => insertStatesOfFlag(write.tx, decision);
  const { targeting_rules: rules, requires } = state.content;
  const isSmall = flag.variations === null && rules.length === 0 && requires === undefined;
  if (isSmall) await insertStates();
  else {
    const problem = await writeConfiguration(write, flag, insertStates);
    if (problem !== undefined) return problem;
  }
  recordAudit(write, decision.audit);
  write.publish(decision.messages);
  return decision;
}

/**
 * Writes configuration that the plan of the organization limits. The values of the project are summed under the lock of
 * the organization's sum, so that concurrent writes cannot exceed their limit together.
 */
async function writeConfiguration(
  { tx }: FlagWrite,
  flag: Flag,
  change: () => Promise<unknown>,
): Promise<Problem | undefined> {
  const problem = await writeWithinLimit(tx, flag.organizationId, change);
  if (problem !== undefined || flag.variations === null) return problem;
  return checkProjectValues(await sumLargestValues(tx, flag.projectId));
}

type UpdateRequest = WithStoredVariations<WithCheckedRules<UpdateFlag>>;

/** Changes a flag or its state. `changed` is false if the flag already has the requested values. */
export async function changeFlag(
  write: FlagWrite,
  request: FlagRequest,
  requested: UpdateRequest,
): Promise<(FlagAndState & { lastEvaluatedAt: Date | null; changed: boolean }) | Problem> {
  const environments = await holdForChange(write, request, requested);
  const decided = await decideUnderLock(write, { ...request, environments }, (current, context) =>
    decideRequest(write, current, { ...requested, environments }, context),
  );
  if (isProblem(decided)) return decided;
  const { current, decision } = decided;
  if (decision === "unchanged") return { ...current, changed: false };
  return { ...decision, lastEvaluatedAt: current.lastEvaluatedAt, changed: true };
}

/**
 * Takes the locks that precede that of the flag, if the request needs them. Returns the environments of the project for a
 * change of variations. They are locked before the flag, as for its deletion: a new environment locks its project and
 * then the flags.
 */
async function holdForChange(
  { tx }: FlagWrite,
  { scope }: FlagRequest,
  requested: UpdateRequest,
): Promise<FlagEnvironment[]> {
  const changesVariations = requested.variations !== undefined;
  const environments = changesVariations ? await holdEnvironments(tx, scope.projectId) : [];
  if (changesVariations || hasReferences(requested)) await lockReferences(tx, scope.projectId);
  return environments;
}

async function decideRequest(
  write: FlagWrite,
  current: FlagInEnvironment,
  { environments, ...requested }: UpdateRequest & { environments: readonly FlagEnvironment[] },
  context: ChangeContext,
): Promise<ReturnType<typeof decideChange> | Problem> {
  const { value_type: requestedType } = requested;
  const { valueType } = current.flag;
  const isSame = isDeepStrictEqual(requested.variations, current.flag.variations);
  const variations = isSame ? undefined : requested.variations;
  if (requestedType !== undefined && requestedType !== valueType) return typeNeverChanges;
  const unusable = variations && checkVariations(valueType, variations);
  if (unusable !== undefined) return unusable;
  const flag = variations === undefined ? current.flag : { ...current.flag, variations };
  const content = changedContent(flag, current.state.content, requested, context);
  if (isProblem(content)) return content;
  const wrong = hasReferences(requested)
    ? await checkReferences(write.tx, { flag, ...current.state }, content)
    : undefined;
  if (wrong !== undefined) return asRequestProblem(wrong);
  if (variations === undefined) return decideChange(current, { ...requested, content }, context);
  const ids = new Set(environments.map(({ id }) => id));
  const stored = await readStates(write.tx, flag.id);
  // The rows of a deleted environment stay until they are swept.
  const states = stored.filter(({ environmentId }) => ids.has(environmentId));
  const after = states.map((state) =>
    state.environmentId === current.state.environmentId ? { ...state, content } : state,
  );
  const contents = after.map((state) => state.content);
  const problem =
    checkUsedVariations(variations, after, environments) ??
    checkEntrySize(flag, contents) ??
    (await checkRequiredVariations(write.tx, current.flag, variations));
  return problem ?? decideChange(current, { ...requested, content, states }, context);
}

/** Decides under the lock of the flag, and writes the decision. No other change to the flag can intervene. */
export async function decideUnderLock<Decided extends Decision | "unchanged">(
  write: FlagWrite,
  request: FlagRequest & {
    /** The environments of the project, for a change of variations. */
    environments?: readonly FlagEnvironment[];
    /** Returns true if a change of a protected environment needs no approval. Turning off is checked elsewhere. */
    isExempt?: () => Promise<boolean>;
  },
  decide: (
    current: FlagInEnvironment,
    context: ChangeContext,
  ) => Decided | Problem | Promise<Decided | Problem>,
): Promise<{ current: FlagInEnvironment; decision: Decided } | Problem> {
  const [current, context] = await Promise.all([lockPermitted(write, request), write.context()]);
  if (isProblem(current)) return current;
  const decision = await decide(current, context);
  if (decision === "unchanged") return { current, decision };
  if (isProblem(decision)) return decision;
  const refused = await checkApproved(write, { ...request, current, decision });
  if (refused !== undefined) return refused;
  const { flag, states } = decision;
  for (const { content: after } of states)
    await holdNewAudiences(write.tx, flag.projectId, { before: current.state.content, after });
  const changesVariations = flag.variations !== current.flag.variations;
  if (!changesVariations && states.every((state) => hasSameSize(current.state, state)))
    write.doNotAwait(updateFlag(write.tx, decision));
  else {
    const problem = await writeConfiguration(write, flag, () =>
      Promise.all([
        updateFlag(write.tx, decision),
        ...(changesVariations ? [updateVariations(write.tx, flag)] : []),
      ]),
    );
    if (problem !== undefined) return problem;
  }
  recordAudit(write, decision.audit);
  write.publish(decision.messages);
  return { current, decision };
}

type Settled = Pick<FlagInEnvironment, "flag" | "state" | "lastEvaluatedAt">;

/** Changes settings of several flags in one transaction. Returns the flags in the order of the request. */
export async function changeFlags(
  write: FlagWrite,
  scope: { projectId: string; environmentId: string },
  { flag_ids, set }: UpdateFlags,
): Promise<{ flags: Settled[] } | Problem> {
  const flagIds = [...new Set(flag_ids.map((id) => id.toLowerCase()))];
  const bytes = await measureStates(write.tx, { ...scope, flagIds });
  if (bytes > maxPageBytes) return tooLargeTogether;
  const locked = await lockAll(write, { ...scope, flagIds });
  const missing = flagIds.find((id) => !locked.has(id));
  if (missing !== undefined) return noSuchFlagIn(flag_ids, missing);
  const context = await write.context();
  const changed = decideSettings([...locked.values()], set, context);
  if (isProblem(changed)) return changed;
  const decisions = [...changed.values()];
  if (decisions.length > 0)
    write.doNotAwait(
      updateSettings(
        write.tx,
        decisions.map(({ flag }) => flag),
      ),
    );
  recordAudit(
    write,
    decisions.flatMap(({ audit }) => audit),
  );
  write.publish(decisions.flatMap(({ messages }) => messages));
  return { flags: flagIds.map((id) => ({ ...locked.get(id), ...changed.get(id) }) as Settled) };
}

/** Locks flags, and writes the states that they lack while an environment is being filled. */
async function lockAll(
  write: FlagWrite,
  scope: { projectId: string; environmentId: string; flagIds: readonly string[] },
): Promise<Map<string, LockedFlag>> {
  await lockRows(write.tx, scope);
  const lock = async () =>
    new Map((await lockFlags(write.tx, scope)).map((locked) => [locked.flag.id, locked]));
  const locked = await lock();
  const lacking = scope.flagIds.filter((id) => locked.get(id)?.lacksStates !== false);
  if (lacking.length === 0) return locked;
  for (const flagId of lacking) await fillFlag(write, { ...scope, flagId });
  return lock();
}

const tooLargeTogether = createProblem(
  "VALIDATION_001",
  "/flag_ids: the rules and values of these flags exceed 16 MiB together. Send fewer ids.",
);

function noSuchFlagIn(flagIds: readonly string[], missing: string): Problem {
  const index = flagIds.findIndex((id) => id.toLowerCase() === missing);
  return createProblem("NOT_FOUND_001", `/flag_ids/${index}: there is no such flag.`);
}

/** Returns whether the parts of two states that the plan limits are the same. */
const hasSameSize = ({ content: before }: StoredState, { content: after }: StoredState): boolean =>
  isDeepStrictEqual(before.targeting_rules, after.targeting_rules) &&
  isDeepStrictEqual(before.serve, after.serve) &&
  isDeepStrictEqual(before.requires, after.requires);

export async function removeFlag(
  write: FlagWrite,
  request: FlagRequest,
): Promise<{ removed: Flag } | Problem> {
  const environments = await holdEnvironments(write.tx, request.scope.projectId);
  await lockReferences(write.tx, request.scope.projectId);
  const current = await lockPermitted(write, request);
  if (isProblem(current)) return current;
  const required = await checkNotRequired(write.tx, current.flag);
  if (required !== undefined) return required;
  const { id, version } = current.flag;
  const guarded = environments.filter(({ protection }) => protection !== null);
  if (guarded.length > 0 && write.approval === undefined)
    return approvalNeeded(guarded, {
      proposals: [{ kind: "flag_deletion", flag_id: id, base_version: version }],
    });
  const context = await write.context();
  const states = await readStates(write.tx, current.flag.id);
  const decision = decideDelete({ ...current, states }, context);
  await deleteFlag(write.tx, decision);
  recordAudit(write, decision.audit);
  write.publish(decision.messages);
  return { removed: decision.flag };
}

async function lockPermitted(
  write: Write & TimeAndIds,
  { scope, permit }: FlagRequest,
): Promise<FlagInEnvironment | Problem> {
  let current = await lockFlag(write.tx, scope);
  // While an environment is being filled, the flag may lack states. `lockFlag` also returns undefined without the state.
  if (current === undefined || current.lacksStates) {
    await fillFlag(write, scope);
    current = await lockFlag(write.tx, scope);
  }
  if (current === undefined) return noSuchFlag;
  return permit?.(current) ?? current;
}

/**
 * Returns the problem for a key that is taken. It has no `Location` if the other flag is deleted before its id is read.
 */
async function keyTaken(write: Write, flag: Flag): Promise<Problem> {
  const id = await findFlagId(write.tx, flag);
  return createProblem(
    "CONFLICT_001",
    `The project already has a flag with the key ${flag.key}.`,
    id === undefined ? undefined : { location: pathOf({ id }) },
  );
}

const typeNeverChanges = createProblem(
  "VALIDATION_001",
  "/value_type never changes. Create another flag with the other type.",
);

const createOff = (environment: FlagEnvironment): Problem =>
  approvalNeeded([environment], {
    advice: " Create the flag without `enabled`, then request to turn it on.",
  });

export const noSuchFlag = createProblem(
  "NOT_FOUND_001",
  "There is no such flag or environment in this project.",
);
