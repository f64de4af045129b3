import { isDeepStrictEqual } from "node:util";
import type { CreateFlag, UpdateFlag, UpdateFlags } from "@halyard/contracts";
import { createProblem, isProblem, type Problem } from "@halyard/http";
import type { ChangeContext, TimeAndIds } from "../access/change-context.ts";
import { maxPageBytes } from "../access/page-bounds.ts";
import type { Change } from "../access/routes.ts";
import { recordAudit } from "../audit/audit-store.ts";
import type { Write } from "../outbox/write.ts";
import { writeWithinLimit } from "./configuration-limit.ts";
import { decideChange, decideCreate, decideDelete, decideSettings } from "./decide-flag.ts";
import { fillFlag } from "./environment-fills.ts";
import {
  changedContent,
  type Decision,
  type Flag,
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
  measureStates,
  readStates,
  updateFlag,
  updateSettings,
} from "./flag-store.ts";
import type { WithCheckedRules } from "./targeting-rules.ts";

/**
 * A write to flags, for a request or for a scheduled change. Each use case in this file decides and writes the decision
 * in one transaction. Use cases that change a flag lock it first.
 */
export type FlagWrite = Write & TimeAndIds & Pick<Change, "context">;

type ChangeRequest = {
  scope: FlagScope;
  /** Checks the flag and its state before the change. A problem leaves both unchanged. */
  permit?: (current: FlagAndState) => Problem | undefined;
};

export type FlagAndState = { flag: Flag; state: StoredState };

/** Creates a flag with its states in all environments of the project. */
export async function createFlag(
  write: FlagWrite,
  scope: { organizationId: string; projectId: string; environmentId: string },
  request: WithCheckedRules<CreateFlag>,
): Promise<FlagAndState | Problem> {
  const environments = await holdEnvironments(write.tx, scope.projectId);
  const environment = environments.find(({ id }) => id === scope.environmentId);
  if (environment === undefined) return noSuchFlag;
  const context = await write.context();
  const decision = decideCreate({ ...scope, environments, environment }, request, context);
  if (!(await insertFlag(write.tx, decision.flag))) return keyTaken(write, decision.flag);
  const insertStates = () => insertStatesOfFlag(write.tx, decision);
  if (decision.state.content.targeting_rules.length === 0) await insertStates();
  else {
    const problem = await writeWithinLimit(write.tx, scope.organizationId, insertStates);
    if (problem !== undefined) return problem;
  }
  recordAudit(write, decision.audit);
  write.publish(decision.messages);
  return decision;
}

/** Changes a flag or its state. `changed` is false if the flag already has the requested values. */
export async function changeFlag(
  write: FlagWrite,
  request: ChangeRequest,
  requested: WithCheckedRules<UpdateFlag>,
): Promise<(FlagAndState & { lastEvaluatedAt: Date | null; changed: boolean }) | Problem> {
  const decided = await decideUnderLock(write, request, (current, context) =>
    decideChange(
      current,
      { ...requested, content: changedContent(current.state.content, requested) },
      context,
    ),
  );
  if (isProblem(decided)) return decided;
  const { current, decision } = decided;
  if (decision === "unchanged") return { ...current, changed: false };
  return { ...decision, lastEvaluatedAt: current.lastEvaluatedAt, changed: true };
}

/** Decides under the lock of the flag, and writes the decision. No other change to the flag can intervene. */
export async function decideUnderLock<Decided extends Decision | "unchanged">(
  write: FlagWrite,
  request: ChangeRequest,
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
  const [state] = decision.states;
  if (state === undefined || hasSameRules(current.state, state))
    write.doNotAwait(updateFlag(write.tx, decision));
  else {
    const problem = await writeWithinLimit(write.tx, decision.flag.organizationId, () =>
      updateFlag(write.tx, decision),
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
  "/flag_ids: the rules of these flags exceed 16 MiB together. Send fewer ids.",
);

function noSuchFlagIn(flagIds: readonly string[], missing: string): Problem {
  const index = flagIds.findIndex((id) => id.toLowerCase() === missing);
  return createProblem("NOT_FOUND_001", `/flag_ids/${index}: there is no such flag.`);
}

const hasSameRules = (before: StoredState, after: StoredState): boolean =>
  isDeepStrictEqual(before.content.targeting_rules, after.content.targeting_rules);

export async function removeFlag(
  write: FlagWrite,
  request: ChangeRequest,
): Promise<{ removed: Flag } | Problem> {
  await holdEnvironments(write.tx, request.scope.projectId);
  const current = await lockPermitted(write, request);
  if (isProblem(current)) return current;
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
  { scope, permit }: ChangeRequest,
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

export const noSuchFlag = createProblem(
  "NOT_FOUND_001",
  "There is no such flag or environment in this project.",
);
