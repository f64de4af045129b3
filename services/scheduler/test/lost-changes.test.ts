import { describe, expect, it } from "@jest/globals";
import { findLostChanges, type Queue, type Watched } from "../src/dispatch/lost-messages.ts";

/** Tests when a sent change counts as lost, given the results of successive checks of the queue. */
const change = { id: "change" };

/** Returns the index of the check at which the change counts as lost, or -1. */
function lostAt(checks: readonly Queue[]): number {
  let watched: Watched = new Map();
  return checks.findIndex((queue) => {
    const found = findLostChanges([change], queue, watched);
    watched = found.watched;
    return found.lost.length > 0;
  });
}
const empty = (last: number): Queue => ({ first: last + 1, last });
const holding = (first: number, last: number): Queue => ({ first, last });

describe("a sent change is lost", () => {
  it("at the second check if the queue is empty", () => {
    expect(lostAt([empty(7), empty(7)])).toBe(1);
    expect(lostAt([empty(0), empty(0)])).toBe(1);
  });

  it("when its message and then its answer can no longer be in the queue", () => {
    const checks = [holding(1, 5), holding(3, 9), holding(9, 14), holding(10, 20), holding(20, 30)];
    expect(lostAt(checks)).toBe(-1);
    expect(lostAt([...checks, holding(21, 40)])).toBe(5);
  });

  it("never while the first message stays", () => {
    expect(lostAt(Array.from({ length: 50 }, (_none, check) => holding(3, 10 + check)))).toBe(-1);
  });

  it("when the queue was recreated and its sequence restarted", () => {
    expect(lostAt([holding(400, 500), holding(400, 500), holding(1, 3), holding(4, 5)])).toBe(3);
  });
});

describe("a change that was sent again", () => {
  it("is checked from the beginning", () => {
    const checks = [empty(1), empty(1), empty(1), empty(1)];
    let watched: Watched = new Map();
    const lost = checks.map((queue) => {
      const found = findLostChanges([change], queue, watched);
      watched = found.watched;
      return found.lost.length;
    });
    expect(lost).toEqual([0, 1, 1, 1]);
  });
});
