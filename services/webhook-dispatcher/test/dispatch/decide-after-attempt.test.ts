import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  type Delivering,
  decideAfterAttempt,
  decideWhetherToRetry,
  saysGoneForGood,
  tookLong,
} from "../../src/dispatch/decide-after-attempt.ts";
import type { SendResult } from "../../src/sending/send.ts";

const plan = [100, 200, 300, 400, 500];
const delivering = (fields: Partial<Delivering> = {}): Delivering => ({
  status: "delivering",
  seriesAttempts: 0,
  redelivery: false,
  goneOnly: true,
  ...fields,
});
const answered = (status: number): SendResult => ({
  kind: "answered",
  status,
  durationMs: 5,
  body: "",
});
const failed: SendResult = { kind: "failed", error: "refused", timedOut: false, durationMs: 1 };
const after = (delivery: Delivering, result: SendResult) =>
  decideAfterAttempt(delivery, result, { plan, random: 0 });

describe("an attempt", () => {
  it.each([200, 204, 299])("with the response %i completes the delivery", (status) => {
    expect(after(delivering(), answered(status))).toEqual({ status: "delivered", goneOnly: false });
  });

  it.each([199, 300, 302, 400, 410, 500, 599])("with the response %i is retried", (status) => {
    expect(after(delivering(), answered(status))).toMatchObject({
      status: "retrying",
      afterMs: 100,
    });
  });

  it("without a response is retried", () => {
    expect(after(delivering(), failed)).toEqual({
      status: "retrying",
      afterMs: 100,
      goneOnly: false,
    });
  });

  it("is the last one if it is the fifth retry", () => {
    expect(after(delivering({ seriesAttempts: 4 }), failed)).toMatchObject({ status: "retrying" });
    expect(after(delivering({ seriesAttempts: 5 }), failed)).toMatchObject({ status: "failed" });
  });

  it("of a redelivery has no retries", () => {
    expect(after(delivering({ redelivery: true, seriesAttempts: 1 }), failed).status).toBe(
      "failed",
    );
  });

  it("is not retried if the webhook was disabled or deleted meanwhile", () => {
    const next = { status: "retrying", afterMs: 5, goneOnly: false } as const;
    expect(decideWhetherToRetry(next, { enabled: true })).toBe(next);
    for (const webhook of [{ enabled: false }, undefined])
      expect(decideWhetherToRetry(next, webhook)).toEqual({ status: "cancelled", goneOnly: false });
  });
});

const results = fc.oneof(
  fc.constant<SendResult>(failed),
  fc.constantFrom(200, 301, 404, 410, 429, 500).map(answered),
);

/** Makes attempts until the delivery has ended. */
function complete(answers: readonly SendResult[]) {
  let delivery = delivering();
  const made: SendResult[] = [];
  for (;;) {
    const result = answers[made.length] ?? failed;
    made.push(result);
    const next = after(delivery, result);
    if (next.status !== "retrying") return { made, next };
    const { goneOnly } = next;
    delivery = delivering({ seriesAttempts: delivery.seriesAttempts + 1, goneOnly });
  }
}

describe("for any responses of a target", () => {
  const deliveries = fc.array(results, { minLength: 6, maxLength: 6 }).map(complete);
  const always = (check: (delivery: ReturnType<typeof complete>) => void) =>
    fc.assert(fc.property(deliveries, check));

  it("there are six attempts at most, and fewer only if one succeeds", () =>
    always(({ made, next }) => {
      expect(made.length).toBeLessThanOrEqual(6);
      if (made.length < 6) expect(next.status).toBe("delivered");
    }));

  it("a delivery is delivered if and only if its last attempt succeeds", () =>
    always(({ made, next }) => {
      const last = made.at(-1);
      expect(next.status === "delivered").toBe(last?.kind === "answered" && last.status === 200);
    }));

  it("a target is gone for good if and only if all responses were 410", () =>
    always(({ made, next }) => {
      const onlyGone = made.every((result) => result.kind === "answered" && result.status === 410);
      expect(saysGoneForGood(next)).toBe(onlyGone);
    }));
});

describe("an attempt counts as long", () => {
  it("after five seconds with any response, or without one", () => {
    expect(tookLong({ ...answered(200), durationMs: 29_000 })).toBe(true);
    expect(tookLong({ ...failed, timedOut: true })).toBe(true);
    expect(tookLong({ ...answered(500), durationMs: 5_000 })).toBe(false);
    expect(tookLong(failed)).toBe(false);
  });
});
