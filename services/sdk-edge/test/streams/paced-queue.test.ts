import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import {
  createPacedQueue,
  groupIntervalMs,
  maxGroupSize,
  type PacedQueue,
} from "../../src/streams/paced-queue.ts";

let turns: string[];
let queue: PacedQueue<string>;
let elapsedMs: number;
beforeEach(() => {
  jest.useFakeTimers();
  turns = [];
  elapsedMs = 0;
  queue = createPacedQueue({ serve: (one) => turns.push(one), monotonicMs: () => elapsedMs });
});
afterEach(() => {
  jest.useRealTimers();
});

const names = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`);

/** Serves the next group, on time or late. */
function nextGroup(lateMs = 0): void {
  elapsedMs += groupIntervalMs + lateMs;
  jest.advanceTimersByTime(groupIntervalMs);
}

describe("given few items", () => {
  it("serves all of them immediately", () => {
    queue.add("e1", names("a", maxGroupSize));
    expect(turns).toEqual(names("a", maxGroupSize));
  });

  it("serves items that are added right afterwards in the next group", () => {
    queue.add("e1", ["a"]);
    queue.add("e1", ["a"]);
    expect(turns).toEqual(["a"]);
    nextGroup();
    expect(turns).toEqual(["a", "a"]);
  });

  it("stops its timer when the queue is empty", () => {
    queue.add("e1", ["a"]);
    nextGroup();
    expect(jest.getTimerCount()).toBe(0);
  });
});

describe("given many items", () => {
  it("serves the first ones immediately and the others in groups, each item once", () => {
    queue.add("e1", names("a", 250));
    expect(turns).toHaveLength(100);
    nextGroup();
    expect(turns).toHaveLength(200);
    nextGroup();
    expect(turns).toEqual(names("a", 250));
  });

  it("makes groups smaller while the event loop is late, and larger when it is on time again", () => {
    queue.add("e1", names("a", 1_000));
    const sizes = [0, 10, 200, 24, 4].map((lateMs) => {
      const before = turns.length;
      nextGroup(lateMs);
      return turns.length - before;
    });
    expect(sizes).toEqual([100, 25, 5, 25, 100]);
  });

  it("serves a waiting item once for several changes, and an item that was served already again", () => {
    queue.add("e1", names("a", 150));
    for (let more = 0; more < 10; more += 1) queue.add("e1", names("a", 150));
    nextGroup();
    nextGroup();
    nextGroup();
    expect(turns).toHaveLength(250);
    expect(new Set(turns.slice(100, 150))).toEqual(new Set(names("a", 150).slice(100)));
  });

  it("does not serve removed items", () => {
    queue.add("e1", names("a", 101));
    queue.remove("e1", "a100");
    nextGroup();
    expect(turns).toHaveLength(100);
  });

  it("serves a short queue without waiting for a long one", () => {
    queue.add("many", names("m", 1_000));
    queue.add("few", names("f", 10));
    nextGroup();
    expect(turns.filter((one) => one.startsWith("f"))).toHaveLength(10);
    expect(turns.filter((one) => one.startsWith("m"))).toHaveLength(150);
  });

  it("serves more queues than fit into a group in consecutive groups", () => {
    for (let number = 0; number < 250; number += 1) queue.add(`e${number}`, [`q${number}`]);
    nextGroup();
    nextGroup();
    nextGroup();
    expect(new Set(turns).size).toBe(250);
  });
});
