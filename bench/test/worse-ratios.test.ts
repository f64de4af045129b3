import { describe, expect, it } from "@jest/globals";
import type { Figure } from "../src/reporting/figure.ts";
import { worseRatios } from "../src/worse-ratios.ts";

describe("given a saved ratio of 2 and a tolerance of 1.5", () => {
  const figure: Figure = { what: "CPU per change", unit: "ms", measured: 20, baseline: 10 };
  const accepted = { saved: [figure], tolerance: 1.5 };

  it.each([
    ["a smaller ratio", 1],
    ["the same ratio", 2],
    ["a ratio at the tolerance", 3],
  ])("%s is accepted", (_name, ratio) => {
    expect(worseRatios([withRatio(ratio)], accepted)).toEqual([]);
  });

  it("reports a larger ratio with the limit", () => {
    expect(worseRatios([withRatio(3.1)], accepted)).toEqual([
      '"CPU per change" has a ratio of 3.10. Accepted: 2.00, at most 3.00.',
    ]);
  });

  it("reports a ratio that is not a number", () => {
    expect(worseRatios([withRatio(Number.NaN)], accepted)).toHaveLength(1);
  });

  it("reports a ratio without a saved one", () => {
    const other = { ...figure, what: "memory" };
    expect(worseRatios([figure, other], accepted)).toEqual(['"memory" has no accepted ratio.']);
  });

  it("reports a saved ratio that was not measured", () => {
    expect(worseRatios([], accepted)).toEqual(['"CPU per change" was not measured.']);
  });

  it("ignores a figure without a baseline", () => {
    const { baseline: _, ...absolute } = figure;
    expect(worseRatios([absolute], { saved: [], tolerance: 1.5 })).toEqual([]);
  });

  function withRatio(ratio: number): Figure {
    return { ...figure, measured: ratio, baseline: 1 };
  }
});
