import { describe, expect, it } from "@jest/globals";
import {
  endsSoon,
  expiriesWithin,
  expiryInstant,
  outlives,
  overlapsFor,
  stateOf,
} from "../src/keys/key-state.ts";

const now = Date.parse("2026-11-23T12:00:00.000Z");

describe("the state of a key", () => {
  it.each([
    { state: "active", revoked_at: null, expires_at: null },
    { state: "active", revoked_at: null, expires_at: "2027-01-01T00:00:00.000Z" },
    { state: "expires soon", revoked_at: null, expires_at: "2026-12-01T00:00:00.000Z" },
    { state: "expired", revoked_at: null, expires_at: "2026-11-23T12:00:00.000Z" },
    { state: "revoked", revoked_at: "2026-11-20T00:00:00.000Z", expires_at: null },
  ])("is $state with expiry $expires_at and revocation $revoked_at", ({ state, ...key }) => {
    expect(stateOf(key, now)).toBe(state);
  });
});

describe("the expiry of a new key", () => {
  it("is never by default", () => {
    expect(expiriesWithin(null, now)[0]).toBe("never");
    expect(expiryInstant("never", "", now)).toBeNull();
  });

  it("is within the life of the issuing key", () => {
    expect(expiriesWithin("2027-01-01T00:00:00.000Z", now)).toEqual(["parent", "30", "date"]);
    expect(outlives("2027-01-01T00:00:00.001Z", "2027-01-01T00:00:00.000Z")).toBe(true);
    expect(outlives("2027-01-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z")).toBe(false);
    expect(outlives("2099-01-01T00:00:00.000Z", null)).toBe(false);
  });

  it("is counted from now, or is the local time that was entered", () => {
    expect(expiryInstant("30", "", now)).toBe("2026-12-23T12:00:00.000Z");
    const local = new Date(2027, 0, 31, 9, 30);
    expect(expiryInstant("date", "2027-01-31T09:30", now)).toBe(local.toISOString());
    expect(expiryInstant("date", "", now)).toBeUndefined();
  });
});

it("rotates the key in use only with an overlap, so that its new key can be copied", () => {
  expect(overlapsFor(false)[0]?.seconds).toBe(0);
  expect(overlapsFor(true)[0]?.seconds).toBe(600);
});

it.each<[string, string | null, boolean]>([
  ["has no end", null, false],
  ["ends in eleven minutes", "2027-01-31T09:11:00Z", false],
  ["ends in ten minutes", "2027-01-31T09:10:00Z", true],
  ["ends in a second", "2027-01-31T09:00:01Z", true],
  ["has ended", "2027-01-31T09:00:00Z", false],
])("warns only in the last ten minutes of a key: one that %s", (_, expiresAt, warns) => {
  expect(endsSoon(expiresAt, Date.parse("2027-01-31T09:00:00Z"))).toBe(warns);
});
