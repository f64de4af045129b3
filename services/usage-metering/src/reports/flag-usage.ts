import type { FlagUsage } from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";
import type { KnownEnvironment } from "../directory/directory.ts";
import { evaluationsByHour, lastEvaluatedAt } from "./decide-flag-usage.ts";
import { type KeptHour, readHours, readLastSeen } from "./report-store.ts";

/** How often a flag was asked for, as the API shows it. */
export async function reportFlagUsage(
  sql: Sql,
  asked: { flagId: string; environments: readonly KnownEnvironment[]; hours: number },
): Promise<FlagUsage> {
  const { flagId, hours } = asked;
  const environmentIds = asked.environments.map(({ environmentId }) => environmentId);
  const [kept, seen] = await Promise.all([
    readHours(sql, { flagId, environmentIds, hours }),
    readLastSeen(sql, { flagId, environmentIds }),
  ]);
  const byEnvironment = Map.groupBy(kept, (row) => row.environmentId);
  return {
    flag_id: flagId,
    hours,
    environments: asked.environments.map(({ environmentId, name }) => {
      const here = byEnvironment.get(environmentId) ?? [];
      const of = (kind: KeptHour["of"]) => here.filter((row) => row.of === kind);
      const byHour = evaluationsByHour(flagId, { flag: of("flag"), bulk: of("bulk") });
      const last = seen.find((row) => row.environmentId === environmentId);
      return {
        environment_id: environmentId,
        name,
        last_evaluated_at:
          last === undefined ? null : (lastEvaluatedAt(flagId, last)?.toISOString() ?? null),
        evaluations: byHour.reduce((sum, { count }) => sum + count, 0),
        by_hour: byHour.map(({ hour, count }) => ({
          hour: hour.toISOString(),
          evaluations: count,
        })),
      };
    }),
  };
}
