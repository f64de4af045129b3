import { describe, expect, it } from "@jest/globals";
import { findLostChanges, type Queue, type Watched } from "../src/dispatch/lost-messages.ts";

/** When a change that is under way counts as lost, by what looks at the queue find. */
const change = { id: "change" };

/** At which of these looks it is lost, counted from 0. */
function lostAt(looks: readonly Queue[]): number {
  let watched: Watched = new Map();
  return looks.findIndex((queue) => {
    const found = findLostChanges([change], queue, watched);
    watched = found.watched;
    return found.lost.length > 0;
  });
}
const empty = (last: number): Queue => ({ first: last + 1, last });
const holding = (first: number, last: number): Queue => ({ first, last });

describe("a change that is under way is lost", () => {
  it("at the second look, when the queue is empty", () => {
    expect(lostAt([empty(7), empty(7)])).toBe(1);
    expect(lostAt([empty(0), empty(0)])).toBe(1);
  });

  it("when all has left that was there, and then all that may be the answer to it", () => {
    const looks = [holding(1, 5), holding(3, 9), holding(9, 14), holding(10, 20), holding(20, 30)];
    expect(lostAt(looks)).toBe(-1);
    expect(lostAt([...looks, holding(21, 40)])).toBe(5);
  });

  it("never while the first message stays", () => {
    expect(lostAt(Array.from({ length: 50 }, (_none, look) => holding(3, 10 + look)))).toBe(-1);
  });

  it("when the queue was made anew, with numbers from the beginning", () => {
    expect(lostAt([holding(400, 500), holding(400, 500), holding(1, 3), holding(4, 5)])).toBe(3);
  });
});

describe("a change that was sent again", () => {
  it("is watched as one that was just found", () => {
    const looks = [empty(1), empty(1), empty(1), empty(1)];
    let watched: Watched = new Map();
    const lost = looks.map((queue) => {
      const found = findLostChanges([change], queue, watched);
      watched = found.watched;
      return found.lost.length;
    });
    expect(lost).toEqual([0, 1, 1, 1]);
  });
});
