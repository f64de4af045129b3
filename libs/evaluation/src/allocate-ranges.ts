import { buckets } from "./bucket.ts";
import type { Range } from "./flag-state.ts";

/** The buckets of each variation. */
export type Allocation = ReadonlyMap<string, readonly Range[]>;

/** A variation and its number of buckets. The numbers of all variations add up to 10,000. */
type Wanted = { variation: string; size: number };

/**
 * Allocates all buckets so that the fewest users get another variation than before. A variation keeps its lowest buckets
 * up to its new size. The buckets that are free go, in ascending order, to the growing variations in the order of the
 * list. So exactly the difference of the sizes moves.
 */
export function allocateRanges(before: Allocation, wanted: readonly Wanted[]): Allocation {
  const kept = new Map<string, Range[]>();
  for (const { variation, size } of wanted)
    kept.set(variation, lowest(before.get(variation) ?? [], size));
  const free = gapsBetween([...kept.values()].flat());
  const allocated = new Map<string, readonly Range[]>();
  for (const { variation, size } of wanted) {
    const own = kept.get(variation) ?? [];
    const added = takeLowest(free, size - sizeOf(own));
    allocated.set(variation, merge([...own, ...added]));
  }
  return allocated;
}

export const sizeOf = (ranges: readonly Range[]): number =>
  ranges.reduce((sum, [from, to]) => sum + to - from, 0);

/** Returns the lowest buckets of ranges, at most `size`. */
function lowest(ranges: readonly Range[], size: number): Range[] {
  return takeLowest([...ranges].sort(ascending), size);
}

/** Removes the lowest buckets from ordered ranges, and returns them. */
function takeLowest(ranges: Range[], size: number): Range[] {
  const taken: Range[] = [];
  let left = size;
  while (left > 0) {
    const first = ranges.shift();
    if (first === undefined) break;
    const [from, to] = first;
    const end = Math.min(to, from + left);
    taken.push([from, end]);
    if (end < to) ranges.unshift([end, to]);
    left -= end - from;
  }
  return taken;
}

/** Returns the ranges between ranges, in ascending order. */
function gapsBetween(ranges: readonly Range[]): Range[] {
  const gaps: Range[] = [];
  let at = 0;
  for (const [from, to] of [...ranges].sort(ascending)) {
    if (from > at) gaps.push([at, from]);
    at = to;
  }
  if (at < buckets) gaps.push([at, buckets]);
  return gaps;
}

/** Orders ranges, and joins neighbors. */
function merge(ranges: readonly Range[]): Range[] {
  const merged: Range[] = [];
  for (const [from, to] of [...ranges].sort(ascending)) {
    const last = merged.at(-1);
    if (last !== undefined && last[1] === from) merged[merged.length - 1] = [last[0], to];
    else merged.push([from, to]);
  }
  return merged;
}

const ascending = ([one]: Range, [other]: Range): number => one - other;
