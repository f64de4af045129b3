import { describe, expect, it } from "@jest/globals";
import { configSchema } from "../../src/config.ts";
import { retryDelayMs } from "../../src/dispatch/decide-after-attempt.ts";
import type { SendResult } from "../../src/sending/send.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const plan = [minuteMs, 5 * minuteMs, 30 * minuteMs, 2 * hourMs, 12 * hourMs];
const rejected: SendResult = { kind: "failed", error: "refused", timedOut: false, durationMs: 1 };
const answered = (status: number, retryAfterMs?: number): SendResult => ({
  kind: "answered",
  status,
  durationMs: 1,
  body: "",
  ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
});
const delay = (attempts: number, result: SendResult = rejected, random = 0) =>
  retryDelayMs(plan, { attempts, result, random });

describe("the delay before a retry", () => {
  it("is that of the documented plan by default", () => {
    expect(configSchema.shape.WEBHOOK_RETRY_DELAYS.parse(undefined)).toEqual(plan);
  });

  it.each(plan.map((delayMs, index) => [index + 1, delayMs]))(
    "after attempt %i is %i ms",
    (attempts, delayMs) => expect(delay(attempts)).toBe(delayMs),
  );

  it("is undefined after the sixth attempt, because all five retries are used", () => {
    expect(delay(6)).toBeUndefined();
  });

  it("has a jitter of up to 10 %", () => {
    expect(delay(1, rejected, 0.5)).toBe(63_000);
    expect(delay(1, rejected, 1)).toBe(66_000);
  });

  it.each([429, 503])("observes Retry-After of a %i response", (status) => {
    expect(delay(1, answered(status, hourMs))).toBe(hourMs);
  });

  it("is not shortened by Retry-After", () => {
    expect(delay(2, answered(429, 1_000))).toBe(5 * minuteMs);
  });

  it("is a day at most", () => {
    expect(delay(1, answered(503, 1_000 * hourMs))).toBe(24 * hourMs);
  });

  it.each([500, 301, 404])("ignores Retry-After of a %i response", (status) => {
    expect(delay(1, answered(status, hourMs))).toBe(minuteMs);
  });
});
