import { isProblem } from "@halyard/http";
import { describe, expect, it } from "@jest/globals";
import { createTurns, type EndTurn } from "../../src/access/turns.ts";

/** Turns with a clock and timers that the test controls. */
function givenTurns() {
  const clock = { nowMs: 0 };
  let timers: { atMs: number; call: () => void }[] = [];
  const turns = createTurns({
    monotonicMs: () => clock.nowMs,
    after: (ms, call) => void timers.push({ atMs: clock.nowMs + ms, call }),
  });
  const passTime = (ms: number) => {
    clock.nowMs += ms;
    const due = timers.filter(({ atMs }) => atMs <= clock.nowMs);
    timers = timers.filter(({ atMs }) => atMs > clock.nowMs);
    for (const { call } of due) call();
  };
  return { turns, passTime };
}

/** Takes a turn that is free. */
function takeFree(turns: ReturnType<typeof createTurns>, organizationId: string): EndTurn {
  const taken = turns.take(organizationId);
  if (typeof taken !== "function") throw new Error("the turn is not free");
  return taken;
}

describe("given a request with the turn of its organization", () => {
  it("gives the turn to the next requests one by one, in the order of arrival", async () => {
    const { turns, passTime } = givenTurns();
    const endFirst = takeFree(turns, "a");
    const order: number[] = [];
    const waiting = [1, 2].map(async (number) => {
      const end = await turns.take("a");
      order.push(number);
      return end as EndTurn;
    });
    endFirst();
    endFirst();
    passTime(0);
    const endSecond = await waiting[0];
    expect(order).toEqual([1]);
    endSecond?.();
    passTime(0);
    (await waiting[1])?.();
    expect(order).toEqual([1, 2]);
    passTime(0);
    takeFree(turns, "a");
  });

  it("rests after a turn for as long, half a second at most", async () => {
    const { turns, passTime } = givenTurns();
    for (const [lastedMs, restMs] of [
      [100, 100],
      [5_000, 500],
    ] as const) {
      const end = takeFree(turns, "a");
      passTime(lastedMs);
      end();
      passTime(restMs - 1);
      const waiting = turns.take("a");
      expect(waiting).toBeInstanceOf(Promise);
      passTime(1);
      ((await waiting) as EndTurn)();
      passTime(0);
    }
  });

  it("does not delay other organizations", () => {
    const { turns } = givenTurns();
    takeFree(turns, "a");
    takeFree(turns, "b");
  });

  it("are needed for small changes for ten seconds after one with a large effect", () => {
    const { turns } = givenTurns();
    turns.noteLargeEffect("a", 1_000);
    expect(turns.areForSmallChanges("a", 10_999)).toBe(true);
    expect(turns.areForSmallChanges("a", 11_000)).toBe(false);
    expect(turns.areForSmallChanges("b", 1_000)).toBe(false);
  });

  it("rejects further requests when eight wait", () => {
    const { turns } = givenTurns();
    takeFree(turns, "a");
    for (let waiting = 0; waiting < 8; waiting += 1)
      expect(turns.take("a")).toBeInstanceOf(Promise);
    const rejected = turns.take("a");
    expect("rejected" in rejected && isProblem(rejected) && rejected).toMatchObject({
      rejected: "RATE_001",
      headers: { "retry-after": "1", ratelimit: '"large-requests";r=0' },
    });
  });
});
