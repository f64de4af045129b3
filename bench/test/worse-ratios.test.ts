import { describe, expect, it } from "@jest/globals";
import type { Figure } from "../src/reporting/figure.ts";
import { worseRatios } from "../src/worse-ratios.ts";

describe("given a saved ratio of 2 and a tolerance of 1.5", () => {
  const figure: Figure = { what: "CPU per change", unit: "ms", measured: 20, baseline: 10 };
  const accepted = { saved: [figure], tolerance: 1.5 };

  it.each([
    ["a better one", 1],
    ["the same one", 2],
    ["one at the tolerance", 3],
  ])("%s is accepted", (_name, ratio) => {
    expect(worseRatios([withRatio(ratio)], accepted)).toEqual([]);
  });

  it("a worse one is a problem, with the bound that it exceeds", () => {
    expect(worseRatios([withRatio(3.1)], accepted)).toEqual([
      '"CPU per change" has a ratio of 3.10. Accepted: 2.00, at most 3.00.',
    ]);
  });

  it("one that is not a number is a problem", () => {
    expect(worseRatios([withRatio(Number.NaN)], accepted)).toHaveLength(1);
  });

  it("one without a saved ratio is a problem", () => {
    const other = { ...figure, what: "memory" };
    expect(worseRatios([figure, other], accepted)).toEqual(['"memory" has no accepted ratio.']);
  });

  it("one that is no longer measured is a problem", () => {
    expect(worseRatios([], accepted)).toEqual(['"CPU per change" was not measured.']);
  });

  it("a figure without a baseline is not compared", () => {
    const { baseline: _, ...absolute } = figure;
    expect(worseRatios([absolute], { saved: [], tolerance: 1.5 })).toEqual([]);
  });

  function withRatio(ratio: number): Figure {
    return { ...figure, measured: ratio, baseline: 1 };
  }
});
