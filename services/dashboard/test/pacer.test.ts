import { afterEach, beforeEach, expect, it, jest } from "@jest/globals";
import { createPacer } from "../src/live/pacer.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** Records the times of the runs, in milliseconds since the start. */
function open() {
  const start = performance.now();
  const runs: number[] = [];
  const pacer = createPacer(() => runs.push(performance.now() - start), {
    ...{ collectMs: 150, everyMs: 1_000 },
  });
  return { ...pacer, runs };
}

it("runs soon after a single request", () => {
  const { request, runs } = open();
  request();
  jest.runAllTimers();
  expect(runs).toEqual([150]);
});

it("runs immediately on request, if the last run was long ago", () => {
  const { request, runs } = open();
  request(0);
  jest.advanceTimersByTime(0);
  request(0);
  jest.runAllTimers();
  expect(runs).toEqual([0, 1_000]);
});

it("runs at most once a second during a burst, and once after its last request", () => {
  const { request, runs } = open();
  for (let ms = 0; ms <= 2_500; ms += 10) {
    request();
    jest.advanceTimersByTime(10);
  }
  jest.runAllTimers();
  expect(runs).toEqual([150, 1_150, 2_150, 3_150]);
});

it("runs again for a request that is made during a run", () => {
  const runs: number[] = [];
  const pacer = createPacer(
    () => {
      runs.push(performance.now());
      if (runs.length === 1) pacer.request();
    },
    { collectMs: 150, everyMs: 1_000 },
  );
  pacer.request();
  jest.runAllTimers();
  expect(runs).toHaveLength(2);
});

it("does not run after it was stopped", () => {
  const { request, stop, runs } = open();
  request();
  stop();
  jest.runAllTimers();
  expect(runs).toEqual([]);
});
