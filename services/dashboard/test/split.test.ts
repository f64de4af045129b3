import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { splitOf, withEqualWeights, withoutVariation, withWeight } from "../src/targeting/split.ts";

const split = (...weights: number[]) =>
  weights.map((weight, at) => ({ variation: `v${at}`, weight }));
const weightsIn = (shares: readonly { weight: number }[]) => shares.map(({ weight }) => weight);
const sumOf = (shares: readonly { weight: number }[]) =>
  shares.reduce((sum, { weight }) => sum + Math.round(weight * 100), 0);

/** Splits whose weights add up to 100. */
const splits = fc
  .array(fc.integer({ min: 0, max: 10_000 }), { minLength: 0, maxLength: 6 })
  .map((cuts) => [0, ...cuts.toSorted((a, b) => a - b), 10_000])
  .map((cuts) => split(...cuts.slice(1).map((cut, at) => (cut - (cuts[at] ?? 0)) / 100)));

describe("the edits of a split", () => {
  it.each([
    [[50, 50], 0, 60, [60, 40]],
    [[34, 33, 33], 0, 40, [40, 30, 30]],
    [[50, 25, 25], 0, 0, [0, 50, 50]],
    [[100, 0, 0], 0, 40, [40, 60, 0]],
    [[50, 50], 1, 12.25, [87.75, 12.25]],
    [[0, 50, 50], 1, 0.01, [0, 0.01, 99.99]],
    [[10, 30, 60], 1, 100, [0, 100, 0]],
    [[100], 0, 40, [100]],
  ])(
    "gives the rest of %j to the others when share %d becomes %d %%",
    (weights, at, weight, expected) => {
      expect(weightsIn(withWeight(split(...weights), `v${at}`, weight))).toEqual(expected);
    },
  );

  it("always add up to 100, for any split and weight", () => {
    fc.assert(
      fc.property(splits, fc.integer({ min: 0, max: 10_000 }), fc.nat(), (shares, size, index) => {
        const { variation } = shares[index % shares.length] as { variation: string };
        expect(sumOf(withWeight(shares, variation, size / 100))).toBe(10_000);
        expect(sumOf(withEqualWeights(shares))).toBe(10_000);
        if (shares.length > 1) expect(sumOf(withoutVariation(shares, variation))).toBe(10_000);
      }),
    );
  });

  it("divide 100 into shares that differ by at most 0.01", () => {
    expect(weightsIn(withEqualWeights(split(100, 0, 0)))).toEqual([33.34, 33.33, 33.33]);
  });

  it("move no user when one variation becomes a split", () => {
    expect(splitOf({ variation: "red" }, ["blue", "red"])).toEqual([
      { variation: "red", weight: 100 },
      { variation: "blue", weight: 0 },
    ]);
  });
});
