import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { firstState, nextStep, type Outcome, type State } from "../src/next-step.ts";

const polled: Outcome = { kind: "polled" };
const rejected = (by: "stream" | "poll", status: number, retryAfterMs = 0): Outcome => ({
  ...{ kind: "failed", by, status, retryAfterMs },
});
const failed = (by: "stream" | "poll"): Outcome => rejected(by, 0);

function follow(state: State, outcome: Outcome, random = 0.5): { state: State; waitMs: number } {
  const step = nextStep(state, outcome, random);
  if (step === "stop") throw new Error("The client has stopped");
  return step;
}

describe("given an outage of the edge", () => {
  it("alternates between streams and polls, with waits of up to 30 s", () => {
    let state = firstState(true);
    const attempts: string[] = [];
    const waits: number[] = [];
    for (let attempt = 0; attempt < 8; attempt += 1) {
      const by = state.polls > 0 ? "poll" : "stream";
      const step = follow(state, failed(by), 1);
      attempts.push(by);
      waits.push(step.waitMs);
      state = step.state;
    }
    expect(attempts.join(" ")).toBe("stream poll stream poll stream poll stream poll");
    expect(waits).toEqual([2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000, 30_000]);
  });

  it("streams within seconds after its end, also if the first success is a poll", () => {
    let state = firstState(true);
    for (const by of ["stream", "poll", "stream", "poll", "stream"] as const)
      state = follow(state, failed(by)).state;
    expect(state.polls).toBe(1);
    const next = follow(state, polled);
    expect(next.state.polls).toBe(0);
    expect(next.waitMs).toBeLessThanOrEqual(2_000);
  });
});

describe("given streams that fail while polls succeed", () => {
  it("polls for minutes after three failures", () => {
    let state = firstState(true);
    for (let round = 0; round < 2; round += 1) {
      state = follow(state, rejected("stream", 503)).state;
      state = follow(state, polled).state;
      expect(state.polls).toBe(0);
    }
    state = follow(state, rejected("stream", 503)).state;
    const next = follow(state, polled);
    expect(next).toMatchObject({ state: { polls: 4 }, waitMs: 60_000 });
  });

  it("waits longer after each stream that is cut early", () => {
    const cut: Outcome = { kind: "streamed", livedMs: 5_000, retryMs: 3_000 };
    let state = firstState(true);
    const waits: number[] = [];
    for (let round = 0; round < 6; round += 1) {
      const step = follow(state, cut, 1);
      waits.push(step.waitMs);
      state = step.state;
    }
    expect(waits).toEqual([3_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    expect(follow(state, { ...cut, livedMs: 60_000 }, 1).waitMs).toBe(3_000);
  });
});

describe("given error responses", () => {
  it.each([401, 403])("stops after %d", (status) => {
    expect(nextStep(firstState(true), rejected("stream", status), 0.5)).toBe("stop");
    expect(nextStep(firstState(true), rejected("poll", status), 0.5)).toBe("stop");
  });

  it("polls immediately after a stream was limited, for at least the given time", () => {
    expect(follow(firstState(true), rejected("stream", 429))).toMatchObject({
      ...{ state: { polls: 5 }, waitMs: 0 },
    });
    const { state } = follow(firstState(true), rejected("stream", 429, 1_800_000));
    expect(state.polls).toBe(30);
  });

  it("waits for a minute after a poll that is wrong in itself", () => {
    expect(follow(firstState(false), rejected("poll", 413))).toMatchObject({ waitMs: 60_000 });
  });

  it("never streams a context that is too large for a header", () => {
    let state = firstState(false);
    for (const outcome of [polled, failed("poll"), rejected("poll", 503), polled])
      state = follow(state, outcome).state;
    expect(state.polls).toBe(Number.POSITIVE_INFINITY);
  });
});

it("spreads polls by 10% to both sides", () => {
  const state = { ...firstState(true), polls: 3 };
  expect(follow(state, polled, 0).waitMs).toBeCloseTo(54_000);
  expect(follow(state, polled, 1).waitMs).toBeCloseTo(66_000);
});

it("tries a stream within 40 polls after any history", () => {
  const outcome = fc.constantFrom<Outcome>(
    polled,
    failed("poll"),
    rejected("poll", 503),
    rejected("poll", 429, 60_000),
    failed("stream"),
    rejected("stream", 503),
    rejected("stream", 429),
    { kind: "held_back" },
  );
  fc.assert(
    fc.property(
      fc.array(outcome, { maxLength: 30 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (history, random) => {
        let state = firstState(true);
        for (const outcome of history) state = follow(state, outcome, random).state;
        for (let poll = 0; poll < 40 && state.polls > 0; poll += 1)
          state = follow(state, polled, random).state;
        expect(state.polls).toBe(0);
      },
    ),
  );
});
