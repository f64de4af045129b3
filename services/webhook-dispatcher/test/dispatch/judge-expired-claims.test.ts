import { describe, expect, it } from "@jest/globals";
import {
  checksUntilLost,
  type ExpiredClaim,
  judgeExpiredClaims,
} from "../../src/dispatch/expired-claims.ts";

/** Claims that consecutive checks find expired. */
const anothers: ExpiredClaim = { id: "delivery", webhookId: "webhook", claim: "claim" };
const held = [{ id: "delivery", claim: "claim" }];

/** Returns the result of the last of several checks. `checks` contains the expired claims of each. */
function lastOf(checks: readonly (readonly ExpiredClaim[])[], holds = held.slice(1)) {
  let judged = judgeExpiredClaims([], { held: holds, before: new Map() });
  for (const expired of checks)
    judged = judgeExpiredClaims(expired, { held: holds, before: judged.sightings });
  return judged;
}
const times = (count: number, found: readonly ExpiredClaim[]) => Array(count).fill(found);

describe("an expired claim", () => {
  it("of another process is lost after enough consecutive checks, and not before", () => {
    expect(lastOf(times(checksUntilLost - 1, [anothers])).lost).toEqual([]);
    expect(lastOf(times(checksUntilLost, [anothers])).lost).toEqual([anothers]);
  });

  it("that was renewed in between is counted from the beginning", () => {
    const checks = [...times(checksUntilLost - 1, [anothers]), [], [anothers]];
    expect(lastOf(checks).lost).toEqual([]);
  });

  it("is counted separately from an earlier claim of the same delivery", () => {
    const checks = [
      ...times(checksUntilLost - 1, [anothers]),
      [{ ...anothers, claim: "a later one" }],
    ];
    expect(lastOf(checks).lost).toEqual([]);
  });

  it("of this process is never lost, but listed for renewal", () => {
    expect(lastOf(times(2 * checksUntilLost, [anothers]), held)).toMatchObject({ held, lost: [] });
  });

  it("that its process has released is lost immediately", () => {
    const givenUp = { ...anothers, claim: null };
    expect(lastOf([[givenUp]]).lost).toEqual([givenUp]);
  });
});
