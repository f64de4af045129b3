import { describe, expect, it } from "@jest/globals";
import { stayAwake } from "../src/http/stay-awake.ts";
import { type Figure, isMet } from "../src/reporting/figure.ts";
import { figureTable } from "../src/reporting/table.ts";
import { alternate } from "../src/rounds.ts";
import { quantile } from "../src/statistics.ts";

describe("given a figure with a goal", () => {
  const speed: Figure = { what: "speed", unit: "/s", measured: 790, baseline: 1_000 };

  it.each([
    ["a ratio below the minimum is not met", { ...speed, goal: ratio(0.8) }, false],
    ["a ratio at the minimum is met", { ...speed, measured: 800, goal: ratio(0.8) }, true],
    ["a ratio without a baseline is not met", { ...without(speed), goal: ratio(0.8) }, false],
    ["a value below its limit is met", { ...speed, goal: below(800) }, true],
    ["a value at its limit is not met", { ...speed, goal: below(790) }, false],
  ] as const)("%s", (_name, figure, met) => {
    expect(isMet(figure)).toBe(met);
  });

  it("the table shows it", () => {
    const lines = figureTable([{ ...speed, goal: ratio(0.8) }]).split("\n");
    expect(lines[2]?.split("|").map((cell) => cell.trim())).toEqual([
      "",
      "speed",
      "790 /s",
      "1,000 /s",
      "0.79",
      "ratio ≥ 0.80",
      "**no**",
      "",
    ]);
  });

  function ratio(atLeast: number): NonNullable<Figure["goal"]> {
    return { of: "ratio", atLeast };
  }

  function below(bound: number): NonNullable<Figure["goal"]> {
    return { of: "measured", below: bound };
  }

  function without({ baseline: _, ...figure }: Figure): Figure {
    return figure;
  }
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
    const measured = await alternate(3, {
      one: async () => ({ value: [9, 1, 5][order.push("one") % 3] as number }),
      other: async () => ({ value: order.push("other") }),
    });
    expect(order).toEqual(["one", "other", "one", "other", "one", "other"]);
    expect(measured.one.value).toBe(5);
    expect(measured.other.value).toBe(4);
  });
});

describe("given values", () => {
  it("the 99th percentile of a hundred values is the second largest", () => {
    const values = Array.from({ length: 100 }, (_, index) => 100 - index);
    expect(quantile(values, 0.99)).toBe(99);
    expect(quantile(values, 0.5)).toBe(50);
    expect(quantile(values, 1)).toBe(100);
  });
});
