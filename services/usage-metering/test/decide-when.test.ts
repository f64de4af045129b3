import { describe, expect, it } from "@jest/globals";
import { countedHourMs, monthOf, seenAtMs } from "../src/counting/decide-sums.ts";

/** The hour in which usage counts, if the clocks of edges may be wrong. */
const now = Date.parse("2027-03-01T00:30:00.000Z");

describe("the hour in which usage counts", () => {
  it.each([
    {
      sent: "2027-03-01T00:00:00Z",
      counts: "2027-03-01T00:00:00Z",
      because: "it is the current one",
    },
    {
      sent: "2027-02-28T23:00:00Z",
      counts: "2027-02-28T23:00:00Z",
      because: "messages may be late",
    },
    { sent: "2027-03-01T01:00:00Z", counts: "2027-03-01T01:00:00Z", because: "clocks may differ" },
    {
      sent: "2027-02-22T01:00:00Z",
      counts: "2027-02-22T01:00:00Z",
      because: "it is within seven days",
    },
    { sent: "2027-02-22T00:00:00Z", counts: "2027-03-01T00:00:00Z", because: "it is too long ago" },
    {
      sent: "2027-03-01T02:00:00Z",
      counts: "2027-03-01T00:00:00Z",
      because: "it is too far ahead",
    },
    {
      sent: "1970-01-01T00:00:00Z",
      counts: "2027-03-01T00:00:00Z",
      because: "no clock is right then",
    },
    {
      sent: "9999-12-31T23:00:00Z",
      counts: "2027-03-01T00:00:00Z",
      because: "no clock is right then",
    },
    { sent: "2027-02-28T23:59:59Z", counts: "2027-02-28T23:00:00Z", because: "hours begin at :00" },
  ])("is $counts for $sent: $because", ({ sent, counts }) => {
    expect(countedHourMs(Date.parse(sent), now)).toBe(Date.parse(counts));
  });
});

describe("the stored time of a use", () => {
  it.each([
    { sent: "2027-03-01T00:29:59.999Z", seen: "2027-03-01T00:29:59.999Z" },
    { sent: "2027-03-01T00:30:00.001Z", seen: "2027-03-01T00:30:00.000Z" },
    { sent: "2027-02-22T00:30:00.000Z", seen: "2027-02-22T00:30:00.000Z" },
    { sent: "2027-02-22T00:29:59.999Z", seen: "2027-03-01T00:30:00.000Z" },
    { sent: "9999-12-31T23:59:59.999Z", seen: "2027-03-01T00:30:00.000Z" },
  ])("is $seen for $sent", ({ sent, seen }) => {
    expect(seenAtMs(Date.parse(sent), now)).toBe(Date.parse(seen));
  });
});

describe("the month", () => {
  it("is the month in UTC", () => {
    expect(monthOf(Date.parse("2027-02-28T23:59:59.999Z"))).toBe("2027-02");
    expect(monthOf(Date.parse("2027-03-01T01:00:00.000+02:00"))).toBe("2027-02");
    expect(monthOf(Date.parse("2027-03-01T00:00:00.000Z"))).toBe("2027-03");
  });
});
