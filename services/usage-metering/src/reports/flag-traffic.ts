import { createdAtMsOf, type FlagTraffic, hourMs } from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";
import { addUp } from "../counting/sum-tables.ts";
import type { Directory } from "../directory/directory.ts";
import { lastEvaluatedAt } from "./flag-usage.ts";
import {
  type BulkHour,
  readBulkHours,
  readBulkSeen,
  readFlagSums,
  readFlagsSeen,
  readTrafficStart,
} from "./report-store.ts";

type TrafficRequest = {
  environmentIds: readonly string[];
  hours: number;
  order: "most" | "least";
  limit: number;
};

/** Returns the flags of environments by their evaluations. Flags with the same number are in the order of creation. */
export async function reportFlagTraffic(
  sql: Sql,
  directory: Pick<Directory, "flagIdsOf">,
  { environmentIds, hours, order, limit }: TrafficRequest,
): Promise<FlagTraffic> {
  const since = await readTrafficStart(sql, hours);
  const [sums, bulkHours, bulkSeen] = await Promise.all([
    readFlagSums(sql, { environmentIds, since }),
    readBulkHours(sql, { environmentIds, since }),
    readBulkSeen(sql, environmentIds),
  ]);
  const hoursBy = Map.groupBy(bulkHours, ({ environmentId }) => environmentId);
  const flags = addBulkResponses(
    new Map(sums.map(({ flagId, evaluations }) => [flagId, evaluations])),
    environmentIds.map((environmentId) => ({
      flagIds: directory.flagIdsOf(environmentId),
      bulkHours: hoursBy.get(environmentId) ?? [],
      bulkSeen: bulkSeen.find((row) => row.environmentId === environmentId)?.at ?? null,
    })),
  );
  const sign = order === "most" ? -1 : 1;
  const listed = flags
    .toSorted(
      (one, other) =>
        sign * (one.evaluations - other.evaluations) || (one.flagId < other.flagId ? -1 : 1),
    )
    .slice(0, limit);
  const flagIds = listed.map(({ flagId }) => flagId);
  const flagsSeen = await readFlagsSeen(sql, { environmentIds, flagIds });
  const seenBy = new Map(flagsSeen.map(({ flagId, at }) => [flagId, at]));
  return {
    hours,
    since: new Date(since).toISOString(),
    flags: listed.map(({ flagId, evaluations, bulkSeen: bulk }) => {
      const last = lastEvaluatedAt(flagId, { flag: seenBy.get(flagId) ?? null, bulk });
      return { flag_id: flagId, evaluations, last_evaluated_at: last?.toISOString() ?? null };
    }),
  };
}

type EnvironmentTraffic = {
  flagIds: readonly string[];
  /** Oldest first. */
  bulkHours: readonly Pick<BulkHour, "hour" | "answers">[];
  bulkSeen: Date | null;
};

type Counted = {
  flagId: string;
  createdMs: number;
  evaluations: number;
  bulkSeen: Date | null;
};

/** Adds the bulk responses of all environments to the flags' own evaluations. */
function addBulkResponses(
  single: ReadonlyMap<string, number>,
  environments: readonly EnvironmentTraffic[],
): Counted[] {
  const flags = new Map<string, Counted>();
  for (const { flagIds, bulkHours, bulkSeen } of environments) {
    const responsesSince = sumBulkHours(bulkHours);
    for (const flagId of flagIds) {
      const flag = flags.get(flagId) ?? {
        flagId,
        createdMs: createdAtMsOf(flagId),
        evaluations: single.get(flagId) ?? 0,
        bulkSeen: null,
      };
      flags.set(flagId, flag);
      if (bulkSeen === null || bulkSeen.getTime() < flag.createdMs) continue;
      flag.evaluations = addUp(flag.evaluations, responsesSince(flag.createdMs));
      if (flag.bulkSeen === null || flag.bulkSeen < bulkSeen) flag.bulkSeen = bulkSeen;
    }
  }
  return [...flags.values()];
}

/**
 * Returns a function that returns the bulk responses from the hour of a time. All bulk responses of that hour count,
 * because they are not stored by the minute.
 */
function sumBulkHours(hours: EnvironmentTraffic["bulkHours"]): (fromMs: number) => number {
  let sum = 0;
  const sums = hours.toReversed().map(({ hour, answers }) => {
    sum = addUp(sum, answers);
    return { endMs: hour.getTime() + hourMs, sum };
  });
  return (fromMs) => sums.findLast(({ endMs }) => endMs > fromMs)?.sum ?? 0;
}
