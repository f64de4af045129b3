import { describe, expect, it } from "@jest/globals";
import { countedHourMs, monthOf, seenAtMs } from "../src/counting/decide-sums.ts";

/** Which hour counts, when the clocks of edges may be wrong. */
const now = Date.parse("2027-03-01T00:30:00.000Z");

describe("the hour in which something counts", () => {
  it.each([
    {
      told: "2027-03-01T00:00:00Z",
      counts: "2027-03-01T00:00:00Z",
      because: "it is the present one",
    },
    {
      told: "2027-02-28T23:00:00Z",
      counts: "2027-02-28T23:00:00Z",
      because: "messages may be late",
    },
    { told: "2027-03-01T01:00:00Z", counts: "2027-03-01T01:00:00Z", because: "clocks may differ" },
    {
      told: "2027-02-22T01:00:00Z",
      counts: "2027-02-22T01:00:00Z",
      because: "it is within seven days",
    },
    { told: "2027-02-22T00:00:00Z", counts: "2027-03-01T00:00:00Z", because: "it is too long ago" },
    {
      told: "2027-03-01T02:00:00Z",
      counts: "2027-03-01T00:00:00Z",
      because: "it is too far ahead",
    },
    {
      told: "1970-01-01T00:00:00Z",
      counts: "2027-03-01T00:00:00Z",
      because: "no clock is right then",
    },
    {
      told: "9999-12-31T23:00:00Z",
      counts: "2027-03-01T00:00:00Z",
      because: "no clock is right then",
    },
    { told: "2027-02-28T23:59:59Z", counts: "2027-02-28T23:00:00Z", because: "hours begin at :00" },
  ])("is $counts for $told: $because", ({ told, counts }) => {
    expect(countedHourMs(Date.parse(told), now)).toBe(Date.parse(counts));
  });
});

describe("the instant at which something was seen", () => {
  it.each([
    { told: "2027-03-01T00:29:59.999Z", seen: "2027-03-01T00:29:59.999Z" },
    { told: "2027-03-01T00:30:00.001Z", seen: "2027-03-01T00:30:00.000Z" },
    { told: "2027-02-22T00:30:00.000Z", seen: "2027-02-22T00:30:00.000Z" },
    { told: "2027-02-22T00:29:59.999Z", seen: "2027-03-01T00:30:00.000Z" },
    { told: "9999-12-31T23:59:59.999Z", seen: "2027-03-01T00:30:00.000Z" },
  ])("is $seen for $told", ({ told, seen }) => {
    expect(seenAtMs(Date.parse(told), now)).toBe(Date.parse(seen));
  });
});

describe("the month", () => {
  it("is that of UTC", () => {
    expect(monthOf(Date.parse("2027-02-28T23:59:59.999Z"))).toBe("2027-02");
    expect(monthOf(Date.parse("2027-03-01T01:00:00.000+02:00"))).toBe("2027-02");
    expect(monthOf(Date.parse("2027-03-01T00:00:00.000Z"))).toBe("2027-03");
  });
});
