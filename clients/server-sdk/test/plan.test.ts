import { describe, expect, test } from "@jest/globals";
import type { PollResult } from "../src/connection/fetch-rules.ts";
import {
  afterPoll,
  afterResume,
  afterStream,
  firstPlan,
  nextStep,
  type Plan,
} from "../src/connection/plan.ts";
import type { StreamEnd } from "../src/connection/read-stream.ts";

const unchanged: PollResult = { kind: "unchanged" };
const closed: StreamEnd = { kind: "closed" };
const context = { nowMs: 0, random: () => 1, pollIntervalMs: 60_000 };

function rejected(status: number, retryAfterMs?: number) {
  return { kind: "rejected", status, isOfKey: false, retryAfterMs } as const;
}

function end(plan: Plan, reason: StreamEnd, openMs = 0, retryMs?: number): Plan {
  return afterStream(plan, { end: reason, openMs, retryMs }, context);
}

describe("a stream that fails", () => {
  test("is opened again after a backoff that doubles up to 30 s", () => {
    let plan = firstPlan(0);
    const delays = Array.from({ length: 7 }, () => {
      plan = end(plan, { kind: "unreachable", cause: undefined });
      return plan.streamAtMs;
    });
    expect(delays).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  });

  test("is opened again after a random part of the backoff", () => {
    const half = { ...context, random: () => 0.5 };
    const plan = afterStream(firstPlan(0), { end: closed, openMs: 0, retryMs: 3_000 }, half);
    expect(plan.streamAtMs).toBe(1_500);
  });

  test("never causes attempts without a pause", () => {
    const none = { ...context, random: () => 0 };
    const plan = afterStream(firstPlan(0), { end: closed, openMs: 0, retryMs: 0 }, none);
    expect(plan.streamAtMs).toBe(100);
  });

  test("starts the backoff again after it was open for 30 s", () => {
    const failed = end(end(firstPlan(0), closed), closed);
    expect(end(failed, closed, 30_000).streamAtMs).toBe(1_000);
  });

  test("continues the backoff if it stalls within five minutes", () => {
    const failed = end(end(firstPlan(0), closed), closed);
    expect(end(failed, { kind: "stalled" }, 45_000).streamAtMs).toBe(4_000);
  });

  test("causes polls after the second failure", () => {
    const once = end(firstPlan(0), closed);
    expect(nextStep(once).kind).toBe("stream");
    expect(nextStep(end(once, closed))).toEqual({ kind: "poll", atMs: 0 });
  });

  test("is not opened before the time in Retry-After", () => {
    expect(end(firstPlan(0), rejected(503, 20_000)).streamAtMs).toBeGreaterThanOrEqual(20_000);
  });
});

describe("a stream that is refused", () => {
  test.each<[string, StreamEnd]>([
    ["429", rejected(429)],
    ["404", rejected(404)],
    ["a response that is not a stream", { kind: "not_a_stream" }],
  ])("by %s is replaced by polls at once", (_, reason) => {
    expect(nextStep(end(firstPlan(0), reason))).toEqual({ kind: "poll", atMs: 0 });
  });

  test("is tried again after 33 s at most, then at intervals up to five and a half minutes", () => {
    let plan = firstPlan(0);
    const delays = Array.from({ length: 6 }, () => {
      plan = end(plan, rejected(429));
      return Math.round(plan.streamAtMs / 1_000);
    });
    expect(delays).toEqual([33, 66, 132, 264, 330, 330]);
  });

  test("is not opened before the time in Retry-After, also after a suspension", () => {
    const plan = end(firstPlan(0), rejected(429, 600_000));
    expect(plan.streamAtMs).toBeGreaterThanOrEqual(600_000);
    expect(afterResume(plan, 1_000).streamAtMs).toBeGreaterThanOrEqual(600_000);
  });
});

describe("a stream that sends nothing", () => {
  const silent = end(firstPlan(0), { kind: "silent" });

  test("is held back by a proxy if a poll succeeds, and is tried again later", () => {
    expect(nextStep(silent)).toEqual({ kind: "poll", atMs: 0 });
    expect(afterPoll(silent, unchanged, context).streamAtMs).toBe(33_000);
  });

  test("is lost in the network if a poll fails too, and is tried again soon", () => {
    const plan = afterPoll(silent, { kind: "unreachable", cause: undefined }, context);
    expect(plan.streamAtMs).toBe(1_000);
  });
});

describe("a poll", () => {
  const polling = end(firstPlan(0), rejected(429, 3_600_000));

  test("is repeated after the interval, 10 % more or less", () => {
    const atMs = (random: number) =>
      afterPoll(polling, unchanged, { ...context, random: () => random }).pollAtMs;
    expect([atMs(0), atMs(1)]).toEqual([54_000, 66_000]);
  });

  test("that fails is repeated after a backoff, and after the interval at most", () => {
    let plan = polling;
    const delays = Array.from({ length: 7 }, () => {
      plan = afterPoll(plan, rejected(500), { ...context, pollIntervalMs: 10_000 });
      return plan.pollAtMs;
    });
    expect(delays).toEqual([1_000, 2_000, 4_000, 8_000, 11_000, 11_000, 11_000]);
  });

  test("waits for the time in Retry-After, also after a suspension", () => {
    const plan = afterPoll(polling, rejected(429, 300_000), context);
    expect(plan.pollAtMs).toBeGreaterThanOrEqual(300_000);
    expect(afterResume(plan, 1_000).pollAtMs).toBeGreaterThanOrEqual(300_000);
  });
});

test("After a suspension, the stream is opened immediately", () => {
  const plan = end(end(end(firstPlan(0), closed), closed), closed);
  expect(afterResume(plan, 500).streamAtMs).toBe(500);
});
