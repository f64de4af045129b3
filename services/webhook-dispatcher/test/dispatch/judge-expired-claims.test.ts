import { describe, expect, it } from "@jest/globals";
import {
  checksUntilLost,
  type ExpiredClaim,
  judgeExpiredClaims,
} from "../../src/dispatch/expired-claims.ts";

/** What becomes of claims that are found run out at one look after another. */
const anothers: ExpiredClaim = { id: "delivery", webhookId: "webhook", claim: "claim" };
const held = [{ id: "delivery", claim: "claim" }];

/** The last of several looks, each of which finds what is said. */
function lastOf(looks: readonly (readonly ExpiredClaim[])[], holds = held.slice(1)) {
  let judged = judgeExpiredClaims([], { held: holds, before: new Map() });
  for (const expired of looks)
    judged = judgeExpiredClaims(expired, { held: holds, before: judged.sightings });
  return judged;
}
const times = (count: number, found: readonly ExpiredClaim[]) => Array(count).fill(found);

describe("a claim that has run out", () => {
  it("of another process is lost at the last of so many looks in a row, and not before", () => {
    expect(lastOf(times(checksUntilLost - 1, [anothers])).lost).toEqual([]);
    expect(lastOf(times(checksUntilLost, [anothers])).lost).toEqual([anothers]);
  });

  it("and was renewed in between is counted from the beginning", () => {
    const looks = [...times(checksUntilLost - 1, [anothers]), [], [anothers]];
    expect(lastOf(looks).lost).toEqual([]);
  });

  it("is another one than the claim of the same delivery before it", () => {
    const looks = [
      ...times(checksUntilLost - 1, [anothers]),
      [{ ...anothers, claim: "a later one" }],
    ];
    expect(lastOf(looks).lost).toEqual([]);
  });

  it("is never lost to the process that holds it, which is to renew it", () => {
    expect(lastOf(times(2 * checksUntilLost, [anothers]), held)).toMatchObject({ held, lost: [] });
  });

  it("and was given up is lost at once", () => {
    const givenUp = { ...anothers, claim: null };
    expect(lastOf([[givenUp]]).lost).toEqual([givenUp]);
  });
});
