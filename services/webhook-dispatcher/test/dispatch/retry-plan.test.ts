import { describe, expect, it } from "@jest/globals";
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

describe("the wait before a retry", () => {
  it.each(plan.map((delayMs, index) => [index + 1, delayMs]))(
    "after attempt %i is %i ms",
    (attempts, delayMs) => expect(delay(attempts)).toBe(delayMs),
  );

  it("is none after the sixth attempt: there were five retries", () => {
    expect(delay(6)).toBeUndefined();
  });

  it("is longer by a tenth at most", () => {
    expect(delay(1, rejected, 0.5)).toBe(63_000);
    expect(delay(1, rejected, 1)).toBe(66_000);
  });

  it.each([429, 503])("is as long as a target asks for with %i", (status) => {
    expect(delay(1, answered(status, hourMs))).toBe(hourMs);
  });

  it("is not made shorter by what a target asks for", () => {
    expect(delay(2, answered(429, 1_000))).toBe(5 * minuteMs);
  });

  it("is not made longer than a day", () => {
    expect(delay(1, answered(503, 1_000 * hourMs))).toBe(24 * hourMs);
  });

  it.each([500, 301, 404])("takes no notice of what a target asks for with %i", (status) => {
    expect(delay(1, answered(status, hourMs))).toBe(minuteMs);
  });
});
