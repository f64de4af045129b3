import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { pause } from "../src/index.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

describe("given a pause", () => {
  it("ends after its time, rounded up", async () => {
    const pausing = pause(9.2);
    await jest.advanceTimersByTimeAsync(9);
    expect(jest.getTimerCount()).toBe(1);
    await jest.advanceTimersByTimeAsync(1);
    expect(await pausing).toBe(true);
  });

  it("ends when its signal is aborted, and leaves no timer", async () => {
    const stopping = new AbortController();
    const pausing = pause(3_600_000, stopping.signal);
    stopping.abort();
    expect(await pausing).toBe(false);
    expect(jest.getTimerCount()).toBe(0);
  });

  it("does not begin when its signal was aborted before", async () => {
    expect(await pause(3_600_000, AbortSignal.abort())).toBe(false);
    expect(jest.getTimerCount()).toBe(0);
  });
});
