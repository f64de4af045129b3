import { checkKeyEnvironment } from "@halyard/api-keys";
import * as contract from "@halyard/contracts";
import { referredKeys } from "@halyard/evaluation";
import { answer, checkIfMatch, createProblem, etagOf, isProblem } from "@halyard/http";
import type { Sql, Transaction } from "@halyard/postgres";
import type { TimeAndIds } from "../access/change-context.ts";
import { checkReachesEnvironment } from "../access/principal.ts";
import type { Routes } from "../access/routes.ts";
import { fillFlag } from "../flags/environment-fills.ts";
import { type FlagInEnvironment, type HistoryEntry, pathOfState } from "../flags/flag.ts";
import { decideUnderLock, noSuchFlag } from "../flags/flag-changes.ts";
import { isOnlyRequiredOn } from "../flags/reference-store.ts";
import { asRollbackProblem, checkReferences, lockReferences } from "../flags/references.ts";
import type { Writer } from "../outbox/write.ts";
import { decideRollback } from "./decide-rollback.ts";
import {
  findAudienceTimes,
  findSequence,
  findStateScope,
  isApprovedEntry,
  listHistory,
  readNewestEntries,
  stoodWhenProtected,
} from "./history-store.ts";

/** Default number of entries per page. */
const defaultLimit = 20;

/**
 * Registers the history of a flag's state, for server keys of the project and the operator, and the rollback. Without
 * `limit` and `before`, the response contains the newest entries and no `next_before`.
 */
export function registerHistoryRoutes(
  routes: Routes,
  { sql, writer, now, newId }: TimeAndIds & { sql: Sql; writer: Writer },
): void {
  /** Finds a state, and stores it first if the fill of its environment has not reached the flag. */
  async function findOrFill(asked: Parameters<typeof findStateScope>[1]) {
    const found = await findStateScope(sql, asked);
    if (found !== undefined) return found;
    await writer(async (write) => {
      await fillFlag({ ...write, now, newId }, asked);
      return {};
    });
    return findStateScope(sql, asked);
  }

  routes.read(contract.getHistory, async ({ params, query }, principal) => {
    const scope = await findOrFill({
      projectId: principal.kind === "operator" ? null : principal.key.projectId,
      flagId: params.flagId,
      environmentId: params.envId,
    });
    if (scope === undefined) return noSuchFlag;
    const problem = checkReachesEnvironment(principal, scope.environmentId);
    if (problem !== undefined) return problem;

    const { limit = defaultLimit, before } = query;
    const beforeSequence = before === undefined ? null : await findSequence(sql, scope, before);
    if (beforeSequence === undefined)
      return createProblem(
        "VALIDATION_001",
        "query parameter /before must be the id of an entry of this flag's history in this environment",
      );
    const { entries, more } = await listHistory(sql, scope, { beforeSequence, limit });
    const changes = await findChangesOfAudiences(sql, scope.flagId, entries);
    const history = entries.map((entry) => historyEntryResource(entry, changes));
    if (query.limit === undefined && before === undefined) return answer.ok({ history });
    return answer.ok({ history, next_before: more ? entries.at(-1)?.id : null });
  });

  registerRollback(routes);
}

/** Registers the rollback. It requires a server key, because the change is attributed to a user. */
function registerRollback(routes: Routes): void {
  routes.write(contract.rollBack, {
    run: async (change, { params, request }) => {
      const { key } = change.principal;
      // Only the history says whether the earlier state has references, and it is read after the flag is locked.
      await lockReferences(change.tx, key.projectId);
      let current: FlagInEnvironment;
      let newestFirst: HistoryEntry[] = [];
      return decideUnderLock(
        { ...change, context: () => change.context("rollback") },
        {
          scope: { ...key, flagId: params.flagId, environmentId: params.envId },
          permit: ({ state }) =>
            checkKeyEnvironment(key, state.environmentId) ??
            checkIfMatch(request.ifMatch, state, pathOfState(state)),
          isExempt: () => mayRollBack(change.tx, current, newestFirst),
        },
        async (locked, context) => {
          current = locked;
          newestFirst = await readNewestEntries(change.tx, current.state, 2);
          const decision = decideRollback(current, newestFirst, context);
          if (isProblem(decision)) return decision;
          const wrong = await checkReferences(
            change.tx,
            { flag: current.flag, environmentId: current.state.environmentId },
            decision.state.content,
          );
          return wrong === undefined ? decision : asRollbackProblem(wrong);
        },
      );
    },
    answer: ({ decision: { state, restored } }) => {
      const rolledBackTo = restored.changedAt.toISOString();
      return answer.ok(
        {
          message: `The flag was rolled back to its state of ${rolledBackTo}.`,
          enabled: state.content.enabled,
          rollout_percentage: state.content.rollout_percentage,
          rolled_back_to: rolledBackTo,
        },
        { etag: etagOf(state) },
      );
    },
  });
}

/**
 * Returns whether a rollback in a protected environment is the exception `rollback`. It leads to a state that was approved,
 * or that stood when the protection began. It never turns this flag or another one on, and never undoes another rollback.
 * It brings back no audience, because an audience that the environment does not use changes without an approval.
 */
async function mayRollBack(
  tx: Transaction,
  { flag, environment }: FlagInEnvironment,
  [undone, restored]: readonly HistoryEntry[],
): Promise<boolean> {
  if (environment.protection?.without_approval.includes("rollback") !== true) return false;
  if (undone === undefined || restored === undefined) return false;
  if (undone.changeType === "rollback") return false;
  if (restored.content.enabled && !undone.content.enabled) return false;
  const used = referredKeys(undone.content).audiences;
  if (referredKeys(restored.content).audiences.some((key) => !used.includes(key))) return false;
  const wasApproved =
    (await stoodWhenProtected(tx, restored, undone)) || (await isApprovedEntry(tx, restored.id));
  return wasApproved && isOnlyRequiredOn(tx, flag, environment.id);
}

/** Returns the last change of each audience in the rules of entries: its time, or null for a deleted audience. */
async function findChangesOfAudiences(
  sql: Sql,
  flagId: string,
  entries: readonly HistoryEntry[],
): Promise<ReadonlyMap<string, Date | null>> {
  const keys = new Set(entries.flatMap(({ content }) => referredKeys(content).audiences));
  if (keys.size === 0) return new Map();
  const found = await findAudienceTimes(sql, flagId, [...keys]);
  return new Map([...keys].map((key) => [key, found.get(key) ?? null]));
}

/** Returns a history entry as the API represents it. */
function historyEntryResource(
  entry: HistoryEntry,
  changes: ReadonlyMap<string, Date | null>,
): contract.HistoryEntry {
  const changed = referredKeys(entry.content).audiences.flatMap((key) => {
    const at = changes.get(key) ?? null;
    if (at !== null && at <= entry.changedAt) return [];
    return { key, changed_at: at?.toISOString() ?? null };
  });
  return {
    id: entry.id,
    ...entry.content,
    changed_at: entry.changedAt.toISOString(),
    changed_by: entry.changedBy,
    change_type: entry.changeType,
    ...(changed.length === 0 ? {} : { changed_audiences: changed }),
  };
}
