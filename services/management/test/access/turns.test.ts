import { isProblem } from "@halyard/http";
import { describe, expect, it } from "@jest/globals";
import { createTurns, type EndTurn } from "../../src/access/turns.ts";

/** Takes a turn that is admitted at once. */
function takeFree(turns: ReturnType<typeof createTurns>, organizationId: string): EndTurn {
  const taken = turns.take(organizationId);
  if (typeof taken !== "function") throw new Error("the turn is not free");
  return taken;
}

describe("given a request with the turn of its organization", () => {
  it("gives the turn to the next requests one by one, in the order of arrival", async () => {
    const turns = createTurns();
    const endFirst = takeFree(turns, "a");
    const order: number[] = [];
    const waiting = [1, 2].map(async (number) => {
      const end = await turns.take("a");
      order.push(number);
      return end as EndTurn;
    });
    endFirst();
    endFirst();
    const endSecond = await waiting[0];
    expect(order).toEqual([1]);
    endSecond?.();
    (await waiting[1])?.();
    expect(order).toEqual([1, 2]);
    takeFree(turns, "a");
  });

  it("does not delay other organizations", () => {
    const turns = createTurns();
    takeFree(turns, "a");
    takeFree(turns, "b");
  });

  it("rejects further requests when 16 wait", () => {
    const turns = createTurns();
    takeFree(turns, "a");
    for (let waiting = 0; waiting < 16; waiting += 1)
      expect(turns.take("a")).toBeInstanceOf(Promise);
    const rejected = turns.take("a");
    expect("rejected" in rejected && isProblem(rejected) && rejected).toMatchObject({
      rejected: "RATE_001",
      headers: { "retry-after": "1", ratelimit: '"large-requests";r=0' },
    });
  });
});
