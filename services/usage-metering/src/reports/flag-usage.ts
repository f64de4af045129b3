import { createdAtMsOf, type FlagUsage, hourMs } from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";
import { addUp } from "../counting/sum-tables.ts";
import type { KnownEnvironment } from "../directory/directory.ts";
import { readHours, readLastSeen, readVariations, type StoredHour } from "./report-store.ts";

export async function reportFlagUsage(
  sql: Sql,
  request: { flagId: string; environments: readonly KnownEnvironment[]; hours: number },
): Promise<FlagUsage> {
  const { flagId, hours } = request;
  const environmentIds = request.environments.map(({ environmentId }) => environmentId);
  const [kept, byVariation, seen] = await Promise.all([
    readHours(sql, { flagId, environmentIds, hours }),
    readVariations(sql, { flagId, environmentIds, hours }),
    readLastSeen(sql, { flagId, environmentIds }),
  ]);
  return {
    flag_id: flagId,
    hours,
    environments: request.environments.map(({ environmentId, name }) => {
      const isHere = (row: { environmentId: string }) => row.environmentId === environmentId;
      const last = seen.find(isHere) ?? { flag: null, bulk: null };
      const variations = byVariation
        .filter(isHere)
        .map(({ key, evaluations }) => ({ key, evaluations }));
      const byHour = evaluationsByHour(flagId, kept.filter(isHere), last);
      return {
        environment_id: environmentId,
        name,
        last_evaluated_at: lastEvaluatedAt(flagId, last)?.toISOString() ?? null,
        evaluations: byHour.reduce((sum, { evaluations }) => addUp(sum, evaluations), 0),
        by_hour: byHour,
        ...(variations.length > 0 && { variations }),
      };
    }),
  };
}

type Seen = { flag: Date | null; bulk: Date | null };

/**
 * Adds the bulk responses of the environment to the flag's own evaluations, from the hour of the flag's creation. All
 * bulk responses of that hour count, because they are not stored by the minute.
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
      byHour.set(hour.getTime(), addUp(byHour.get(hour.getTime()) ?? 0, count));
  }
  return [...byHour]
    .toSorted(([one], [other]) => one - other)
    .map(([beganMs, evaluations]) => ({ hour: new Date(beganMs).toISOString(), evaluations }));
}

/** Returns the later time of the two. A bulk response before the flag's creation does not count. */
export function lastEvaluatedAt(flagId: string, seen: Seen): Date | null {
  const bulk = isSince(seen.bulk, flagId) ? seen.bulk : null;
  if (seen.flag === null || bulk === null) return seen.flag ?? bulk;
  return seen.flag > bulk ? seen.flag : bulk;
}

function isSince(instant: Date | null, flagId: string): boolean {
  return instant !== null && instant.getTime() >= createdAtMsOf(flagId);
}
