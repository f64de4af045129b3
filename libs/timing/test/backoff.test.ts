import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { backoffMs, retry } from "../src/index.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

const backoff = { firstMs: 100, maxMs: 500 };

describe("given a backoff", () => {
  it("doubles the delay with each failure, up to its maximum", () => {
    expect([1, 2, 3, 4, 5].map((failures) => backoffMs(backoff, failures))).toEqual([
      100, 200, 400, 500, 500,
    ]);
  });

  it("makes a share of the delay random", () => {
    const jittered = { ...backoff, jitter: 0.5 };
    expect([0, 0.5, 1].map((random) => backoffMs(jittered, 2, random))).toEqual([200, 150, 100]);
  });
});

describe("given work that is retried", () => {
  const unavailable = new Error("unavailable");

  it("returns the result of the first attempt that succeeds", async () => {
    const failures: number[] = [];
    const work = jest
      .fn(async () => "done")
      .mockRejectedValueOnce(unavailable)
      .mockRejectedValueOnce(unavailable);
    const retrying = retry(work, { backoff, onFailure: (_error, count) => failures.push(count) });
    await jest.advanceTimersByTimeAsync(299);
    expect(work).toHaveBeenCalledTimes(2);
    await jest.advanceTimersByTimeAsync(1);
    expect(await retrying).toBe("done");
    expect(failures).toEqual([1, 2]);
  });

  it("ends when the error is rethrown", async () => {
    const onFailure = (error: unknown) => {
      throw error;
    };
    const work = jest.fn(() => Promise.reject(unavailable));
    await expect(retry(work, { backoff, onFailure })).rejects.toBe(unavailable);
    expect(work).toHaveBeenCalledTimes(1);
  });

  it("makes at least one attempt, and no others after its signal was aborted", async () => {
    const work = jest.fn(() => Promise.reject(unavailable));
    const signal = AbortSignal.abort();
    expect(await retry(work, { backoff, signal, onFailure: () => undefined })).toBeUndefined();
    expect(work).toHaveBeenCalledTimes(1);
  });
});
