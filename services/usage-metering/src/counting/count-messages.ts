import { type UsageRecorded, usageMessageId } from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";
import {
  addBulkAnswers,
  addFlags,
  addMonths,
  addRequests,
  markCounted,
  noteEnvironments,
  noteFlags,
  noteKeys,
  takeUncounted,
} from "./count-store.ts";
import { type MonthSum, type Sums, sumUp } from "./decide-sums.ts";

/**
 * Counts messages in one transaction, each once however often it comes: which have been counted stands
 * beside what they added, and both are committed together.
 */
export type Counted = {
  /** Those that had not been counted before. */
  counted: readonly UsageRecorded[];
  sums: Sums;
  /** What the months have come to that were added to. */
  months: readonly MonthSum[];
  /** What time it was. */
  now: Date;
};

export async function countMessages(
  sql: Sql,
  messages: readonly UsageRecorded[],
): Promise<Counted> {
  // The same one may be among them twice, and counts once.
  const byId = new Map(messages.map((message) => [idOf(message), message]));
  return sql.begin(async (tx) => {
    const { uncounted, now } = await takeUncounted(tx, [...byId.values()]);
    const counted = uncounted.flatMap((id) => byId.get(usageMessageId(id)) ?? []);
    const sums = sumUp(counted, now.getTime());
    if (counted.length === 0) return { counted, sums, months: [], now };
    // They go out together: one wait for all of them.
    const [months] = await Promise.all([
      sums.months.length > 0 ? addMonths(tx, sums.months) : [],
      sums.requests.length > 0 ? addRequests(tx, sums.requests) : [],
      sums.bulkAnswers.length > 0 ? addBulkAnswers(tx, sums.bulkAnswers) : [],
      sums.flags.length > 0 ? addFlags(tx, sums.flags) : [],
      sums.environmentsSeen.length > 0 ? noteEnvironments(tx, sums.environmentsSeen) : [],
      sums.flagsSeen.length > 0 ? noteFlags(tx, sums.flagsSeen) : [],
      sums.keysSeen.length > 0 ? noteKeys(tx, sums.keysSeen) : [],
      markCounted(tx, uncounted),
    ]);
    return { counted, sums, months, now };
  });
}

/** As PostgreSQL writes it. */
function idOf({ edge, sequence }: UsageRecorded): string {
  return usageMessageId({ edge: edge.toLowerCase(), sequence });
}
