import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { createTimeSlicer, runSteps, type Steps } from "../src/index.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** A queue of items that take a millisecond each, processed in slices of 5 ms. */
function queueOf(items: number) {
  let nowMs = 0;
  const queue = { left: items };
  const slicer = createTimeSlicer({
    work(isOver) {
      while (queue.left > 0 && !isOver()) {
        queue.left -= 1;
        nowMs += 1;
      }
      return queue.left > 0;
    },
    sliceMs: 5,
    monotonicMs: () => nowMs,
  });
  return { queue, slicer };
}

const nextSlice = () => jest.advanceTimersToNextTimer();

describe("given a time slicer", () => {
  it("runs one slice in each turn of the event loop", () => {
    const { queue, slicer } = queueOf(12);
    slicer.start();
    const left = [queue.left];
    for (let slice = 0; slice < 3; slice += 1) {
      nextSlice();
      left.push(queue.left);
    }
    expect(left).toEqual([12, 7, 2, 0]);
    expect(jest.getTimerCount()).toBe(0);
  });

  it("runs the first slice immediately with `atOnce`, unless a slice is scheduled", () => {
    const { queue, slicer } = queueOf(12);
    slicer.start({ atOnce: true });
    slicer.start({ atOnce: true });
    expect(queue.left).toBe(7);
  });

  it("starts again after no work was left", () => {
    const { queue, slicer } = queueOf(1);
    slicer.start({ atOnce: true });
    queue.left = 1;
    slicer.start();
    nextSlice();
    expect(queue.left).toBe(0);
  });

  it("starts again after its work has failed", () => {
    let rounds = 0;
    const slicer = createTimeSlicer({
      work() {
        rounds += 1;
        if (rounds === 1) throw new Error("as intended");
        return false;
      },
      sliceMs: 5,
      monotonicMs: () => 0,
    });
    expect(() => slicer.start({ atOnce: true })).toThrow("as intended");
    slicer.start({ atOnce: true });
    expect(rounds).toBe(2);
  });

  it("continues with work that the work itself adds", () => {
    let rounds = 0;
    const slicer = createTimeSlicer({
      work() {
        rounds += 1;
        slicer.start({ atOnce: true });
        return rounds < 3;
      },
      sliceMs: 5,
      monotonicMs: () => 0,
    });
    slicer.start({ atOnce: true });
    expect(rounds).toBe(1);
    jest.runAllTimers();
    expect(rounds).toBe(3);
  });

  it("does nothing after it was stopped", () => {
    const { queue, slicer } = queueOf(12);
    slicer.start({ atOnce: true });
    slicer.stop();
    slicer.start({ atOnce: true });
    jest.runAllTimers();
    expect(queue.left).toBe(7);
  });
});

describe("given work in steps", () => {
  function* steps(count: number): Steps {
    for (let step = 0; step < count; step += 1) yield;
  }

  it("runs steps until the slice is over", () => {
    const work = steps(3);
    let left = 3;
    expect(runSteps(work, () => left-- === 0)).toBe(false);
    expect(runSteps(work, () => false)).toBe(true);
  });
});
