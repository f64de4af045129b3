import { describe, expect, test } from "@jest/globals";
import type { PollResult } from "../src/connection/fetch-rules.ts";
import { afterPoll, afterStream, firstPlan, nextStep, type Plan } from "../src/connection/plan.ts";
import type { StreamEnd } from "../src/connection/read-stream.ts";
import { randomFrom } from "./support/random.ts";

/**
 * 10,000 clients lose their streams at 0 ms, and the service accepts connections again after an outage. Nothing is sent:
 * the simulation follows the plan of each client until its stream is open.
 */
const clientCount = 10_000;
const ratio = (of: number[], part: number) => of[Math.ceil(of.length * part) - 1] as number;

type Failure = StreamEnd & PollResult;
const unreachable: Failure = { kind: "unreachable", cause: undefined };
const gatewayWithoutEdge: Failure = {
  ...{ kind: "rejected", status: 503, isOfKey: false, retryAfterMs: 1_000 },
};

type Outage = {
  outageMs: number;
  failure: Failure;
  /** Time for which attempts during the outage hang. They then all end with it. */
  hangs: boolean;
};

/** Returns the times of the requests that a client sends after the outage, of which the last opens its stream. */
function requestsOf({ outageMs, failure, hangs }: Outage, random: () => number): number[] {
  const context = (nowMs: number) => ({ nowMs, random, pollIntervalMs: 60_000 });
  const opened = firstPlan(-3_600_000, random);
  const closed = { end: { kind: "closed" } as const, openMs: 3_600_000 };
  let plan: Plan = afterStream(opened, closed, context(0));
  const requests: number[] = [];
  for (;;) {
    const { kind, atMs } = nextStep(plan);
    const isUp = atMs >= outageMs;
    if (isUp) requests.push(atMs - outageMs);
    if (isUp && kind === "stream") return requests;
    const now = context(isUp || !hangs ? atMs : outageMs);
    if (kind === "poll") plan = afterPoll(plan, isUp ? { kind: "unchanged" } : failure, now);
    else plan = afterStream(plan, { end: failure, openMs: undefined }, now);
  }
}

/** Returns the maximum number of requests in any second. */
function busiestSecond(times: number[]): number {
  let first = 0;
  return Math.max(
    ...times.map((time, index) => {
      while ((times[first] as number) <= time - 1_000) first += 1;
      return index - first + 1;
    }),
  );
}

function simulate(outage: Outage, seed: number) {
  const random = randomFrom(seed);
  const clients = Array.from({ length: clientCount }, () => requestsOf(outage, random));
  const ascending = (times: number[]) => times.sort((one, other) => one - other);
  const accepted = ascending(clients.flat());
  const zero = accepted[0] as number;
  const current = ascending(clients.map(([first]) => (first as number) - zero));
  return {
    medianMs: ratio(current, 0.5),
    lastMs: ratio(current, 1),
    perSecond: busiestSecond(accepted),
    maxRequests: Math.max(...clients.map(({ length }) => length)),
  };
}

describe.each([1, 2, 3])("10,000 clients after a restart (seed %i)", (seed) => {
  test.each<[string, Outage]>([
    ["at once", { outageMs: 0, failure: unreachable, hangs: false }],
    ["of 1 s", { outageMs: 1_000, failure: unreachable, hangs: false }],
    ["of 20 s", { outageMs: 20_000, failure: unreachable, hangs: false }],
    ["of 50 s behind a gateway", { outageMs: 50_000, failure: gatewayWithoutEdge, hangs: false }],
    ["that ends attempts which hang", { outageMs: 6_000, failure: unreachable, hangs: true }],
  ])("%s are current in time, with one request each", (_, outage) => {
    const { medianMs, lastMs, perSecond, maxRequests } = simulate(outage, seed);
    expect(medianMs).toBeLessThanOrEqual(3_000);
    expect(lastMs).toBeLessThanOrEqual(6_000);
    expect(perSecond).toBeLessThanOrEqual(2_000);
    expect(maxRequests).toBe(1);
  });

  test("after an outage of ten minutes are current in time, and no second is busier", () => {
    const outage = { outageMs: 600_000, failure: unreachable, hangs: false };
    const { medianMs, lastMs, perSecond } = simulate(outage, seed);
    expect(medianMs).toBeLessThanOrEqual(3_000);
    expect(lastMs).toBeLessThanOrEqual(6_000);
    expect(perSecond).toBeLessThanOrEqual(2_000);
  });
});
