import { checkKeyEnvironment } from "@halyard/api-keys";
import * as contract from "@halyard/contracts";
import { type HistoryEntry as HistoryEntryResource, inSchemaOrder } from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";
import { type App, answer, isRefusal, refuse, registerRoute } from "@halyard/service";
import { authorOf } from "../access/change-context.ts";
import type { Authenticate, AuthenticateKey } from "../access/principal.ts";
import { createEnvironmentFills } from "../flags/environment-fills.ts";
import type { HistoryEntry } from "../flags/flag.ts";
import type { FlagChanges } from "../flags/flag-changes.ts";
import { noSuchFlag } from "../flags/flag-changes.ts";
import { checkIfMatch, etagOf, pathOfState } from "../flags/flag-resource.ts";
import type { AnswerOnce } from "../idempotency/answer-once.ts";
import type { Writer } from "../outbox/write.ts";
import { decideRollback } from "./decide-rollback.ts";
import { findSequence, findStatePlace, listHistory, readNewestEntries } from "./history-store.ts";

/** How many entries are answered when nobody says how many. */
const usualLimit = 20;

/**
 * The history of a flag's state in an environment, for the project's server keys and the operator.
 * Asked for without `limit` and `before`, the answer holds nothing but the newest entries.
 */
export function registerHistoryRoutes(
  app: App,
  options: {
    sql: Sql;
    writer: Writer;
    authenticate: Authenticate;
    now: () => Date;
    newId: () => string;
  },
): void {
  const { sql, writer, authenticate } = options;
  const fills = createEnvironmentFills(options);

  /** In an environment that is being filled, a flag may have no history yet. */
  async function findOrFill(asked: Parameters<typeof findStatePlace>[1]) {
    const found = await findStatePlace(sql, asked);
    if (found !== undefined) return found;
    await writer(async (write) => {
      await fills.fillFlag(write, asked);
      return {};
    });
    return findStatePlace(sql, asked);
  }

  registerRoute(app, contract.getHistory, {
    authenticate,
    handle: async ({ params, query }, principal) => {
      const place = await findOrFill({
        projectId: principal.kind === "operator" ? null : principal.key.projectId,
        flagId: params.flagId,
        environmentId: params.envId,
      });
      if (place === undefined) return noSuchFlag();
      const refusal =
        principal.kind === "key"
          ? checkKeyEnvironment(principal.key, place.environmentId)
          : undefined;
      if (refusal !== undefined) return refusal;

      const { limit = usualLimit, before } = query;
      const beforeSequence = before === undefined ? null : await findSequence(sql, place, before);
      if (beforeSequence === undefined)
        return refuse(
          "VALIDATION_001",
          "query parameter /before must be the id of an entry of this flag's history in this environment",
        );
      const { entries, more } = await listHistory(sql, place, { beforeSequence, limit });
      const history = entries.map(historyEntryResource);
      if (query.limit === undefined && before === undefined) return answer.ok({ history });
      return answer.ok({ history, next_before: more ? entries.at(-1)?.id : null });
    },
  });
}

/** An entry of the history as the API shows it. */
export function historyEntryResource(entry: HistoryEntry): HistoryEntryResource {
  return {
    id: entry.id,
    enabled: entry.enabled,
    rollout_percentage: entry.rolloutPercentage,
    targeting_rules: inSchemaOrder(entry.targetingRules),
    changed_at: entry.changedAt.toISOString(),
    changed_by: entry.changedBy,
    change_type: entry.changeType,
  };
}

/** The way back to the state before the newest one, for the project's server keys. */
export function registerRollbackRoute(
  app: App,
  options: {
    writer: Writer;
    changes: FlagChanges;
    answerOnce: AnswerOnce;
    authenticate: AuthenticateKey;
  },
): void {
  const { writer, changes, answerOnce, authenticate } = options;

  registerRoute(app, contract.rollBack, {
    authenticate,
    handle: (input, principal) =>
      writer((write) =>
        answerOnce(write, contract.rollBack, input, principal, async () => {
          const { params, request } = input;
          const { key } = principal;
          const rolledBack = await changes.decide(
            write,
            {
              place: { ...key, flagId: params.flagId, environmentId: params.envId },
              author: authorOf(key),
              cause: "rollback",
              permit: ({ state }) =>
                checkKeyEnvironment(key, state.environmentId) ??
                checkIfMatch(request.ifMatch, state, pathOfState(state)),
            },
            async (current, context) => {
              const newestFirst = await readNewestEntries(write.tx, current.state, 2);
              return decideRollback(current, newestFirst, context);
            },
          );
          if (isRefusal(rolledBack)) return rolledBack;
          const { state, restored } = rolledBack.decision;
          const rolledBackTo = restored.changedAt.toISOString();
          return answer.ok(
            {
              message: `The flag is back in its state of ${rolledBackTo}.`,
              enabled: state.enabled,
              rollout_percentage: state.rolloutPercentage,
              rolled_back_to: rolledBackTo,
            },
            { etag: etagOf(state) },
          );
        }),
      ),
  });
}
