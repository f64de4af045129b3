import { beforeEach, describe, expect, it } from "@jest/globals";
import { createElapsed } from "../../src/slots/clock.ts";

let growingMs: number;
let wallMs: number;
let elapsed: () => number;

beforeEach(() => {
  growingMs = 5_000;
  wallMs = 1_000_000;
  elapsed = createElapsed(
    () => growingMs,
    () => wallMs,
  );
});

describe("given the time that a process measures", () => {
  it("is that of the clock that only grows", () => {
    growingMs += 300;
    wallMs += 300;
    expect(elapsed()).toBe(5_300);
  });

  it("knows of the minute in which the machine was suspended", () => {
    growingMs += 10;
    wallMs += 60_010;
    expect(elapsed()).toBe(65_010);
    growingMs += 100;
    wallMs += 100;
    expect(elapsed()).toBe(65_110);
  });

  it("does not go back when the clock on the wall is set back, and does not leap when it is set right", () => {
    growingMs += 100;
    wallMs -= 3_600_000;
    expect(elapsed()).toBe(5_100);
    growingMs += 100;
    wallMs += 100;
    expect(elapsed()).toBe(5_200);
  });

  it("takes two clocks that tick a little apart for what they are", () => {
    for (let second = 1; second <= 100; second += 1) {
      growingMs += 1_000;
      wallMs += 1_001;
      expect(elapsed()).toBe(5_000 + second * 1_000);
    }
  });
});
