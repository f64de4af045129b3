import type { Allocation, Range } from "../src/index.ts";

/** Returns the variation of each bucket. */
export function bucketsOf(allocation: Allocation): string[] {
  const buckets = Array<string>(10_000).fill("");
  for (const [variation, ranges] of allocation)
    for (const [from, to] of ranges) buckets.fill(variation, from, to);
  return buckets;
}

/**
 * Reference allocation for tests: applies the rule of `conformance/README.md` bucket by bucket. It shares only types with
 * `allocateRanges`. Returns the variation of each bucket.
 */
export function allocateByReference(
  before: readonly (string | undefined)[],
  wanted: { variation: string; size: number }[],
): string[] {
  const left = new Map(wanted.map(({ variation, size }) => [variation, size]));
  const take = (variation: string) => {
    const size = left.get(variation) ?? 0;
    left.set(variation, size - 1);
    return size > 0;
  };
  const kept = Array.from({ length: 10_000 }, (_, at) => {
    const variation = before[at];
    return variation !== undefined && (left.get(variation) ?? 0) > 0 && take(variation)
      ? variation
      : undefined;
  });
  return kept.map((variation) => {
    if (variation !== undefined) return variation;
    const growing = wanted.find((each) => (left.get(each.variation) ?? 0) > 0);
    if (growing === undefined) throw new Error("The sizes add up to less than all buckets.");
    take(growing.variation);
    return growing.variation;
  });
}

/** Returns the ranges of a variation, from the variation of each bucket. */
export function rangesOf(variation: string, variations: readonly string[]): Range[] {
  const isStart = (at: number) => variations[at] === variation && variations[at - 1] !== variation;
  const isEnd = (at: number) => variations[at] === variation && variations[at + 1] !== variation;
  const positions = [...variations.keys()];
  const ends = positions.filter(isEnd);
  return positions.filter(isStart).map((from, index) => [from, (ends[index] ?? from) + 1]);
}
