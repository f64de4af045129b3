import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import {
  createWaitingRequests,
  maxWaiting,
  maxWaitingPerEnvironment,
  type WaitingRequests,
} from "../../src/answers/waiting-requests.ts";

let waiting: WaitingRequests;
let resumed: string[];
let known: Set<string>;
beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ["setImmediate"] });
  waiting = createWaitingRequests();
  resumed = [];
  known = new Set();
});
afterEach(() => {
  jest.useRealTimers();
});

const wait = (name: string, environmentId = "e1") =>
  waiting.wait(environmentId, {
    isKnown: () => known.has(name),
    resume: () => void resumed.push(name),
  });

describe("given requests that wait for a change", () => {
  it("resumes those whose change has arrived, and the others keep waiting", () => {
    wait("a");
    wait("b");
    known.add("a");
    waiting.changed("e1");
    expect(resumed).toEqual(["a"]);
    expect(waiting.size).toBe(1);
  });

  it("ignores changes of other environments", () => {
    wait("a");
    known.add("a");
    waiting.changed("e2");
    expect(resumed).toEqual([]);
  });

  it("waits at most a second", () => {
    wait("a");
    jest.advanceTimersByTime(999);
    expect(resumed).toEqual([]);
    jest.advanceTimersByTime(1);
    expect(resumed).toEqual(["a"]);
    waiting.changed("e1");
    expect(resumed).toEqual(["a"]);
    expect(waiting.size).toBe(0);
  });

  it("removes a request whose client has disconnected", () => {
    const leave = wait("a");
    leave?.();
    jest.advanceTimersByTime(2_000);
    expect(resumed).toEqual([]);
    expect(waiting.size).toBe(0);
    expect(jest.getTimerCount()).toBe(0);
  });

  it("resumes many in groups, so that other requests are served in between", async () => {
    for (let index = 0; index < 50; index += 1) {
      wait(`r${index}`);
      known.add(`r${index}`);
    }
    waiting.changed("e1");
    expect(resumed).toHaveLength(20);
    await nextTurn();
    expect(resumed).toHaveLength(40);
    await nextTurn();
    expect(resumed).toHaveLength(50);
    expect(waiting.size).toBe(0);
  });

  it("limits the total number of waiting requests", () => {
    for (let index = 0; index < maxWaiting; index += 1) wait(`r${index}`, `e${index % 20}`);
    expect(waiting.size).toBe(maxWaiting);
    expect(wait("one more", "e20")).toBeUndefined();
    expect(waiting.size).toBe(maxWaiting);
    jest.advanceTimersByTime(1_000);
    expect(waiting.size).toBe(0);
    expect(resumed).not.toContain("one more");
  });

  it("limits the number of waiting requests of each environment", () => {
    for (let index = 0; index < maxWaitingPerEnvironment; index += 1) wait(`r${index}`);
    expect(wait("one more")).toBeUndefined();
    expect(wait("elsewhere", "e2")).toBeDefined();
    expect(resumed).toEqual([]);
  });
});
