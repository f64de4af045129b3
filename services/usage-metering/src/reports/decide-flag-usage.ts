import { createdAtMsOf, isYoung } from "@halyard/contracts";

/** How often a flag was asked for in an environment, from what is kept of it and of the environment. */
export type HourCount = { hour: Date; count: number };

/**
 * Hours in which the flag was asked for, the oldest first: by itself, and by answers about all flags of
 * the environment, except in hours in which it is as young as the hour. In those it was counted by itself.
 */
export function evaluationsByHour(
  flagId: string,
  kept: { flag: readonly HourCount[]; bulk: readonly HourCount[] },
): HourCount[] {
  const byHour = new Map<number, number>();
  const add = ({ hour, count }: HourCount) =>
    byHour.set(hour.getTime(), (byHour.get(hour.getTime()) ?? 0) + count);
  kept.flag.forEach(add);
  kept.bulk.filter(({ hour }) => getsBulkAnswers(flagId, hour.getTime())).forEach(add);
  return [...byHour]
    .toSorted(([one], [other]) => one - other)
    .map(([hourMs, count]) => ({ hour: new Date(hourMs), count }));
}

/** Whether answers about all flags in an hour count for a flag. */
export function getsBulkAnswers(flagId: string, hourBeganMs: number): boolean {
  return !isYoung(flagId, hourBeganMs);
}

/** The later of when it was asked for by itself and with all others, unless that was before it existed. */
export function lastEvaluatedAt(
  flagId: string,
  seen: { flag: Date | null; bulk: Date | null },
): Date | null {
  const bulk =
    seen.bulk !== null && seen.bulk.getTime() >= createdAtMsOf(flagId) ? seen.bulk : null;
  if (seen.flag === null || bulk === null) return seen.flag ?? bulk;
  return seen.flag > bulk ? seen.flag : bulk;
}
