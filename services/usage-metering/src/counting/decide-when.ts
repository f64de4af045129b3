import { hourMs } from "@halyard/contracts";

/**
 * When something happened, as far as an edge's clock can be believed. A clock that is wrong must neither
 * hide use in a month that nobody looks at nor put it where nothing would ever be later.
 */
const furthestAheadMs = hourMs;
/** As long as messages may wait while this service is away, and an edge be cut off. */
const longestLateMs = 7 * 24 * hourMs;

/** The beginning of the hour in which it counts: the one that was told, or else the present one. */
export function countedHourMs(toldMs: number, nowMs: number): number {
  const told = beginningOfHour(toldMs);
  return told - nowMs > furthestAheadMs || nowMs - told > longestLateMs
    ? beginningOfHour(nowMs)
    : told;
}

/** When it was last seen: as told, but never ahead of now, nor longer ago than messages can be late. */
export function seenAtMs(toldMs: number, nowMs: number): number {
  return toldMs > nowMs || nowMs - toldMs > longestLateMs ? nowMs : toldMs;
}

export function beginningOfHour(ms: number): number {
  return ms - (ms % hourMs);
}

/** The month of UTC: `2027-01`. */
export function monthOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, "2027-01".length);
}
