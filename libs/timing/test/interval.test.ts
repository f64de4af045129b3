import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { startInterval } from "../src/index.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

const everySecond = {
  intervalMs: 1_000,
  isExpected: () => false,
  onFailure: () => undefined,
  random: () => 0,
};

describe("given an interval", () => {
  it("runs after each pause, and with `beginsAtOnce` also at the start", async () => {
    const later = jest.fn(async () => undefined);
    const atOnce = jest.fn(async () => undefined);
    const intervals = [
      startInterval(later, everySecond),
      startInterval(atOnce, { ...everySecond, beginsAtOnce: true }),
    ];
    expect([later, atOnce].map(({ mock }) => mock.calls.length)).toEqual([0, 1]);
    await jest.advanceTimersByTimeAsync(2_000);
    expect([later, atOnce].map(({ mock }) => mock.calls.length)).toEqual([2, 3]);
    // Earlier files of this process may have timers too, but no other code runs between these lines.
    const pausing = jest.getTimerCount();
    await Promise.all(intervals.map(({ stop }) => stop()));
    expect(pausing - jest.getTimerCount()).toBe(2);
  });

  it("makes pauses up to a tenth shorter", async () => {
    const work = jest.fn(async () => undefined);
    const interval = startInterval(work, { ...everySecond, random: () => 1 });
    await jest.advanceTimersByTimeAsync(899);
    expect(work).not.toHaveBeenCalled();
    await jest.advanceTimersByTimeAsync(1);
    expect(work).toHaveBeenCalledTimes(1);
    await interval.stop();
  });

  it("never runs concurrently", async () => {
    const working = Promise.withResolvers<void>();
    const work = jest.fn(() => working.promise);
    const interval = startInterval(work, everySecond);
    await jest.advanceTimersByTimeAsync(10_000);
    expect(work).toHaveBeenCalledTimes(1);
    working.resolve();
    await jest.advanceTimersByTimeAsync(1_000);
    expect(work).toHaveBeenCalledTimes(2);
    await interval.stop();
  });

  it("aborts the work's signal when it stops, and waits for the work", async () => {
    let hasEnded = false;
    const working = Promise.withResolvers<AbortSignal>();
    const interval = startInterval(
      async (signal) => {
        working.resolve(signal);
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        hasEnded = true;
      },
      { ...everySecond, beginsAtOnce: true },
    );
    expect((await working.promise).aborted).toBe(false);
    await interval.stop();
    expect(hasEnded).toBe(true);
  });

  it("reports expected errors, and which of them are repeated, and runs again after the pause", async () => {
    const outage = new Error("unavailable");
    const onFailure = jest.fn();
    const outcomes = [outage, outage, undefined, outage];
    const work = async () => {
      const error = outcomes.shift();
      if (error !== undefined) throw error;
    };
    const isExpected = (error: unknown) => error === outage;
    const interval = startInterval(work, { ...everySecond, isExpected, onFailure });
    for (let run = 0; run < 4; run += 1) await jest.advanceTimersByTimeAsync(1_000);
    const isRepeated = [false, true, false];
    expect(onFailure.mock.calls).toEqual(isRepeated.map((each) => [outage, each]));
    await interval.stop();
  });
});
