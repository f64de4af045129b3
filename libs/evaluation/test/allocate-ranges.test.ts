import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { type Allocation, allocateRanges, sizeOf } from "../src/index.ts";
import { allocateByReference, bucketsOf } from "./reference-allocation.ts";
import { runs } from "./thorough.ts";

const names = ["a", "b", "c", "d", "e"];

/** Sizes of some of the variations, which add up to all buckets. */
const sizes = fc
  .tuple(
    fc.shuffledSubarray(names, { minLength: 1 }),
    fc.array(fc.integer({ min: 0, max: 9_999 }), { minLength: 4, maxLength: 4 }),
  )
  .map(([variations, cuts]) => {
    const ends = [
      ...cuts.slice(0, variations.length - 1).sort((one, other) => one - other),
      10_000,
    ];
    return variations.map((variation, index) => ({
      variation,
      size: (ends[index] as number) - (ends[index - 1] ?? 0),
    }));
  });

describe("the allocation of buckets", () => {
  it("covers every bucket once, and gives each variation its size", () => {
    fc.assert(
      fc.property(sizes, sizes, (first, second) => {
        for (const allocation of [
          allocateRanges(new Map(), first),
          allocateRanges(allocateRanges(new Map(), first), second),
        ]) {
          const all = [...allocation.values()].flat().sort(([one], [other]) => one - other);
          expect(all.reduce((end, [from, to]) => (from === end ? to : Number.NaN), 0)).toBe(10_000);
          for (const [, ranges] of allocation)
            for (const [index, [from]] of ranges.entries())
              if (index > 0) expect(from).toBeGreaterThan(ranges[index - 1]?.[1] as number);
        }
        for (const { variation, size } of second)
          expect(sizeOf(allocateRanges(new Map(), second).get(variation) ?? [])).toBe(size);
      }),
      { numRuns: runs(300) },
    );
  });

  it("equals the rule applied bucket by bucket, and moves only the difference", () => {
    fc.assert(
      fc.property(fc.array(sizes, { minLength: 2, maxLength: 5 }), (changes) => {
        let allocation: Allocation = new Map();
        let buckets: string[] = [];
        for (const wanted of changes) {
          const next = allocateRanges(allocation, wanted);
          const nextBuckets = bucketsOf(next);
          expect(nextBuckets).toEqual(allocateByReference(buckets, wanted));
          if (buckets.length > 0)
            expect(movedBetween(buckets, nextBuckets)).toBe(differenceOf(allocation, wanted));
          [allocation, buckets] = [next, nextBuckets];
        }
      }),
      { numRuns: runs(100) },
    );
  });

  it("moves 6 % from 34/33/33 to 40/30/30", () => {
    const sizesOf = (...all: number[]) =>
      all.map((size, index) => ({ variation: names[index] as string, size }));
    const before = allocateRanges(new Map(), sizesOf(3_400, 3_300, 3_300));
    const after = allocateRanges(before, sizesOf(4_000, 3_000, 3_000));
    expect(movedBetween(bucketsOf(before), bucketsOf(after))).toBe(600);
    expect(Object.fromEntries(after)).toEqual({
      a: [
        [0, 3_400],
        [6_400, 6_700],
        [9_700, 10_000],
      ],
      b: [[3_400, 6_400]],
      c: [[6_700, 9_700]],
    });
  });
});

const movedBetween = (before: string[], after: string[]): number =>
  after.filter((variation, at) => variation !== before[at]).length;

/** Returns half of the sum of the absolute differences. */
function differenceOf(before: Allocation, wanted: { variation: string; size: number }[]): number {
  const after = new Map(wanted.map(({ variation, size }) => [variation, size]));
  const sum = names
    .map((name) => Math.abs(sizeOf(before.get(name) ?? []) - (after.get(name) ?? 0)))
    .reduce((total, difference) => total + difference, 0);
  return sum / 2;
}
