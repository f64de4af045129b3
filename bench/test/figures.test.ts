import { describe, expect, it } from "@jest/globals";
import { stayAwake } from "../src/http/stay-awake.ts";
import { atLeast, below, type Figure, figureTable, isMet, ratioAtLeast } from "../src/reporting.ts";
import { worseRatios } from "../src/results.ts";
import { alternate, quantile } from "../src/statistics.ts";

describe("given a figure with a goal", () => {
  const speed: Figure = { what: "speed", unit: "/s", measured: 790, baseline: 1_000 };
  const absolute: Figure = { what: "speed", unit: "/s", measured: 790 };

  it.each([
    ["a ratio below the minimum is not met", { ...speed, goal: ratioAtLeast(0.8) }, false],
    ["a ratio at the minimum is met", { ...speed, goal: ratioAtLeast(0.79) }, true],
    ["a ratio without a baseline is not met", { ...absolute, goal: ratioAtLeast(0.8) }, false],
    ["a value below its limit is met", { ...speed, goal: below(800) }, true],
    ["a value at its limit is not met", { ...speed, goal: below(790) }, false],
    ["a value below its minimum is not met", { ...speed, goal: atLeast(800) }, false],
  ] as const)("%s", (_name, figure, met) => {
    expect(isMet(figure)).toBe(met);
  });

  it("the table shows it, unless the run was quick", () => {
    const figures = [{ ...speed, goal: ratioAtLeast(0.8) }];
    const row = (table: string) =>
      table
        .split("\n")[2]
        ?.split(/ *\| */)
        .slice(1, -1);
    const cells = ["speed", "790 /s", "1,000 /s", "0.79", "ratio ≥ 0.80", "**no**"];
    expect(row(figureTable(figures))).toEqual(cells);
    expect(row(figureTable(figures, true))).toEqual(cells.slice(0, 4));
  });
});

describe("given a load generator without sleep", () => {
  it("does not count time while it did not run", async () => {
    const sleepMs = 30;
    const never = new Int32Array(new SharedArrayBuffer(4));
    let turns = 0;
    const slept = Promise.withResolvers<void>();
    const begun = process.cpuUsage();
    const awake = stayAwake(() => {
      Atomics.wait(never, 0, 0, sleepMs);
      turns += 1;
      if (turns === 10) slept.resolve();
      return false;
    });
    await slept.promise;
    awake.stop();
    const { user, system } = process.cpuUsage(begun);
    // The idle CPU time cannot exceed the CPU time of this process, which excludes sleeping.
    expect(awake.idleCpuMs()).toBeLessThanOrEqual((user + system) / 1e3);
  });
});

describe("given several rounds", () => {
  it("measures the sides in turn and returns the median of each", async () => {
    const order: string[] = [];
    const measured = await alternate({ quick: false, say: () => undefined }, 3, {
      one: async () => ({ value: [9, 1, 5][order.push("one") % 3] as number }),
      other: async () => ({ value: order.push("other") }),
    });
    expect(order).toEqual(["one", "other", "one", "other", "one", "other"]);
    expect(measured.one.value).toBe(5);
    expect(measured.other.value).toBe(4);
  });

  it("the 99th percentile of a hundred values is the second largest", () => {
    const values = Array.from({ length: 100 }, (_, index) => 100 - index);
    expect([0.5, 0.99, 1].map((share) => quantile(values, share))).toEqual([50, 99, 100]);
  });
});

describe("given a saved ratio of 2 and a tolerance of 1.5", () => {
  const withRatio = (ratio: number): Figure => ({
    ...{ what: "CPU per change", unit: "ms", measured: ratio, baseline: 1 },
  });
  const other = { ...withRatio(2), what: "memory" };
  const { baseline: _, ...absolute } = other;

  it.each([
    ["a smaller ratio is accepted", [withRatio(1)], []],
    ["a ratio at the tolerance is accepted", [withRatio(3)], []],
    [
      "a larger ratio is reported with the limit",
      [withRatio(3.1)],
      ['"CPU per change" has a ratio of 3.10. Accepted: 2.00, at most 3.00.'],
    ],
    [
      "a ratio that is not a number is reported",
      [withRatio(Number.NaN)],
      ['"CPU per change" has a ratio of NaN. Accepted: 2.00, at most 3.00.'],
    ],
    [
      "a ratio without a saved one is reported",
      [withRatio(2), other],
      ['"memory" has no accepted ratio.'],
    ],
    ["a saved ratio must be measured", [], ['"CPU per change" was not measured.']],
    ["a figure without a baseline is ignored", [withRatio(2), absolute], []],
  ] as const)("%s", (_name, figures, problems) => {
    const accepted = { saved: [withRatio(2)], tolerance: 1.5 };
    expect(worseRatios(figures, accepted)).toEqual(problems);
  });
});
