import { createdAtMsOf, type FlagUsage, hourMs } from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";
import type { KnownEnvironment } from "../directory/directory.ts";
import { readHours, readLastSeen, type StoredHour } from "./report-store.ts";

/** Returns how often a flag was evaluated, as the API shows it. */
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
  return {
    flag_id: flagId,
    hours,
    environments: asked.environments.map(({ environmentId, name }) => {
      const isHere = (row: { environmentId: string }) => row.environmentId === environmentId;
      const last = seen.find(isHere) ?? { flag: null, bulk: null };
      const byHour = evaluationsByHour(flagId, kept.filter(isHere), last);
      return {
        environment_id: environmentId,
        name,
        last_evaluated_at: lastEvaluatedAt(flagId, last)?.toISOString() ?? null,
        evaluations: byHour.reduce((sum, { evaluations }) => sum + evaluations, 0),
        by_hour: byHour,
      };
    }),
  };
}

type Seen = { flag: Date | null; bulk: Date | null };

/**
 * Adds the answers with all flags of the environment to the flag's own evaluations, from the hour in which it was
 * created. That hour has all of its answers, because answers are not counted by the minute.
 */
export function evaluationsByHour(
  flagId: string,
  kept: readonly Pick<StoredHour, "of" | "hour" | "count">[],
  seen: Seen,
): FlagUsage["environments"][number]["by_hour"] {
  const createdMs = createdAtMsOf(flagId);
  const byHour = new Map<number, number>();
  for (const { of, hour, count } of kept) {
    const existed = isSince(seen.bulk, flagId) && hour.getTime() + hourMs > createdMs;
    if (of === "flag" || existed)
      byHour.set(hour.getTime(), (byHour.get(hour.getTime()) ?? 0) + count);
  }
  return [...byHour]
    .toSorted(([one], [other]) => one - other)
    .map(([beganMs, evaluations]) => ({ hour: new Date(beganMs).toISOString(), evaluations }));
}

/** Returns the later instant of the two, unless the answer with all flags was before the flag's creation. */
export function lastEvaluatedAt(flagId: string, seen: Seen): Date | null {
  const bulk = isSince(seen.bulk, flagId) ? seen.bulk : null;
  if (seen.flag === null || bulk === null) return seen.flag ?? bulk;
  return seen.flag > bulk ? seen.flag : bulk;
}

function isSince(instant: Date | null, flagId: string): boolean {
  return instant !== null && instant.getTime() >= createdAtMsOf(flagId);
}
