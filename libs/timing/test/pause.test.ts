import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { pause } from "../src/index.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

describe("given a pause", () => {
  it("ends after its time, rounded up", async () => {
    const onEnd = jest.fn();
    void pause(9.2).then(onEnd);
    await jest.advanceTimersByTimeAsync(9);
    expect(onEnd).not.toHaveBeenCalled();
    await jest.advanceTimersByTimeAsync(1);
    expect(onEnd).toHaveBeenCalledWith(true);
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
