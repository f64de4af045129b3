import { checkKeyEnvironment } from "@halyard/api-keys";
import * as contract from "@halyard/contracts";
import { type HistoryEntry as HistoryEntryResource, inSchemaOrder } from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";
import { type App, answer, refuse, registerRoute } from "@halyard/service";
import type { Authenticate } from "../access/principal.ts";
import { createEnvironmentFills } from "../flags/environment-fills.ts";
import type { HistoryEntry } from "../flags/flag.ts";
import { noSuchFlag } from "../flags/flag-changes.ts";
import type { Writer } from "../outbox/write.ts";
import { findSequence, findStatePlace, listHistory } from "./history-store.ts";

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
