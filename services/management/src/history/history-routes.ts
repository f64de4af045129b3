import { checkKeyEnvironment } from "@halyard/api-keys";
import * as contract from "@halyard/contracts";
import { answer, checkIfMatch, createProblem, etagOf } from "@halyard/http";
import type { Sql } from "@halyard/postgres";
import type { TimeAndIds } from "../access/change-context.ts";
import { checkReachesEnvironment } from "../access/principal.ts";
import type { Routes } from "../access/routes.ts";
import { fillFlag } from "../flags/environment-fills.ts";
import { type HistoryEntry, pathOfState } from "../flags/flag.ts";
import { decideUnderLock, noSuchFlag } from "../flags/flag-changes.ts";
import type { Writer } from "../outbox/write.ts";
import { decideRollback } from "./decide-rollback.ts";
import { findSequence, findStateScope, listHistory, readNewestEntries } from "./history-store.ts";

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
    const history = entries.map(historyEntryResource);
    if (query.limit === undefined && before === undefined) return answer.ok({ history });
    return answer.ok({ history, next_before: more ? entries.at(-1)?.id : null });
  });

  registerRollback(routes);
}

/** Registers the rollback. It requires a server key, because the change is attributed to a user. */
function registerRollback(routes: Routes): void {
  routes.write(contract.rollBack, {
    run: (change, { params, request }) => {
      const { key } = change.principal;
      return decideUnderLock(
        { ...change, context: () => change.context("rollback") },
        {
          scope: { ...key, flagId: params.flagId, environmentId: params.envId },
          permit: ({ state }) =>
            checkKeyEnvironment(key, state.environmentId) ??
            checkIfMatch(request.ifMatch, state, pathOfState(state)),
        },
        async (current, context) => {
          const newestFirst = await readNewestEntries(change.tx, current.state, 2);
          return decideRollback(current, newestFirst, context);
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

/** Returns a history entry as the API represents it. */
function historyEntryResource(entry: HistoryEntry): contract.HistoryEntry {
  return {
    id: entry.id,
    ...entry.content,
    changed_at: entry.changedAt.toISOString(),
    changed_by: entry.changedBy,
    change_type: entry.changeType,
  };
}
