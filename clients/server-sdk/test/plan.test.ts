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
const unreachable: StreamEnd = { kind: "unreachable", cause: undefined };
const lastedMs = 30_000;
/** A client whose attempts are made at 2,750 ms, 8,250 ms and so on. */
const start = firstPlan(0, () => 0.5);

function rejected(status: number, retryAfterMs?: number) {
  return { kind: "rejected", status, isOfKey: false, retryAfterMs } as const;
}

function end(plan: Plan, reason: StreamEnd, openMs?: number): Plan {
  return afterStream(plan, { end: reason, openMs }, context);
}

/** Ends a stream, or an attempt at one, immediately after its time. */
function endAtTurn(plan: Plan, reason: StreamEnd, openMs?: number): Plan {
  return afterStream(plan, { end: reason, openMs }, { ...context, nowMs: plan.streamAtMs + 1 });
}

describe("a stream that fails", () => {
  test.each<[string, StreamEnd]>([
    ["no connection", unreachable],
    ["503", rejected(503)],
    ["503 with Retry-After", rejected(503, 1_000)],
  ])("(%s) is opened again in each period of 5.5 s", (_, reason) => {
    let plan = end(start, reason);
    const times = Array.from({ length: 4 }, () => {
      const { streamAtMs } = plan;
      plan = endAtTurn(plan, reason);
      return streamAtMs;
    });
    expect(times).toEqual([2_750, 8_250, 13_750, 19_250]);
  });

  test("is opened again at a random time of the period", () => {
    const timeOf = (random: number) =>
      end(
        firstPlan(0, () => random),
        closed,
        lastedMs,
      ).streamAtMs;
    expect([timeOf(0), timeOf(0.1), timeOf(0.9)]).toEqual([5_500, 550, 4_950]);
  });

  test("never has two attempts without a pause, also if a timer fired early", () => {
    const early = { ...context, nowMs: 2_749 };
    expect(afterStream(start, { end: unreachable, openMs: undefined }, early).streamAtMs).toBe(
      8_250,
    );
  });

  test("is opened less often if it is confirmed four times and does not last", () => {
    let plan = start;
    for (let count = 0; count < 3; count += 1) plan = end(plan, closed, 1_000);
    expect(plan).toMatchObject({ streamAtMs: 2_750, polls: false });
    expect(end(plan, closed, 1_000)).toMatchObject({ streamAtMs: 13_750, polls: true });
    expect(end(plan, closed, lastedMs)).toMatchObject({ streamAtMs: 2_750, polls: false });
  });

  test("does not count as lasting if it stalls within five minutes", () => {
    const stalled: StreamEnd = { kind: "stalled", silenceMs: 8_000 };
    expect(end(start, stalled, 299_999).shortStreams).toBe(1);
    expect(end(start, stalled, 300_000).shortStreams).toBe(0);
  });

  test("is replaced by a poll once a minute, and by one request in each period", () => {
    let plan = end(start, unreachable);
    while (nextStep(plan).kind === "stream") plan = endAtTurn(plan, unreachable);
    const { atMs } = nextStep(plan);
    expect(atMs).toBe(2_750 + 10 * 5_500);
    const polled = afterPoll(
      plan,
      { kind: "unreachable", cause: undefined },
      { ...context, nowMs: atMs + 1 },
    );
    expect(nextStep(polled)).toEqual({ kind: "stream", atMs: atMs + 5_500 });
    expect(polled.pollAtMs).toBe(atMs + 1 + 66_000);
  });

  test("is not opened before the time in Retry-After", () => {
    expect(end(start, rejected(503, 20_000)).streamAtMs).toBeGreaterThanOrEqual(20_000);
  });
});

describe("a stream that is refused", () => {
  test.each<[string, StreamEnd]>([
    ["429", rejected(429)],
    ["404", rejected(404)],
    ["a response that is not a stream", { kind: "not_a_stream" }],
  ])("by %s is replaced by polls at once", (_, reason) => {
    expect(nextStep(end(start, reason))).toEqual({ kind: "poll", atMs: 0 });
  });

  test("is tried again after 33 s at most, then at intervals up to five and a half minutes", () => {
    let plan = start;
    const delays = Array.from({ length: 6 }, () => {
      plan = end(plan, rejected(429));
      return Math.round(plan.streamAtMs / 1_000);
    });
    expect(delays).toEqual([33, 66, 132, 264, 330, 330]);
  });

  test("is not opened before the time in Retry-After, also after a suspension", () => {
    const plan = end(start, rejected(429, 600_000));
    expect(plan.streamAtMs).toBeGreaterThanOrEqual(600_000);
    expect(afterResume(plan, 1_000).streamAtMs).toBeGreaterThanOrEqual(600_000);
  });
});

describe("a stream that sends nothing", () => {
  const silent = end(start, { kind: "silent", hasResponse: true });

  test("is held back by a proxy if a poll succeeds, and is tried again later", () => {
    expect(nextStep(silent)).toEqual({ kind: "poll", atMs: 0 });
    expect(afterPoll(silent, unchanged, context).streamAtMs).toBe(33_000);
  });

  test("may be on an edge that hangs if there was no response, and is held back if it happens twice", () => {
    const hung = { kind: "silent", hasResponse: false } as const;
    const first = end(start, hung);
    expect(afterPoll(first, unchanged, context).streamAtMs).toBe(2_750);
    const second = end(first, hung);
    expect(afterPoll(second, unchanged, context).streamAtMs).toBeGreaterThanOrEqual(30_000);
  });

  test("is lost in the network if a poll fails too, and is tried again within the period", () => {
    const plan = afterPoll(silent, { kind: "unreachable", cause: undefined }, context);
    expect(plan.streamAtMs).toBe(2_750);
  });
});

describe("a poll", () => {
  const polling = end(start, rejected(429, 3_600_000));

  test("is repeated after the interval, 10 % more or less", () => {
    const atMs = (random: number) =>
      afterPoll(polling, unchanged, { ...context, random: () => random }).pollAtMs;
    expect([atMs(0), atMs(1)]).toEqual([54_000, 66_000]);
  });

  test("that fails is repeated in each period of 5.5 s", () => {
    const plan = afterPoll(polling, rejected(500), context);
    expect(plan.pollAtMs).toBe(2_750);
    expect(afterPoll(plan, rejected(500), { ...context, nowMs: 2_751 }).pollAtMs).toBe(8_250);
  });

  test("waits for the time in Retry-After, also after a suspension", () => {
    const plan = afterPoll(polling, rejected(429, 300_000), context);
    expect(plan.pollAtMs).toBeGreaterThanOrEqual(300_000);
    expect(afterResume(plan, 1_000).pollAtMs).toBeGreaterThanOrEqual(300_000);
  });
});

test("After a suspension, the stream is opened immediately", () => {
  const plan = end(start, closed);
  expect(afterResume(plan, 500).streamAtMs).toBe(500);
});
