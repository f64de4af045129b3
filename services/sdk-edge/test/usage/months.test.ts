import { describe, expect, it } from "@jest/globals";
import { monthMember, monthOf, monthProblem } from "../../src/usage/months.ts";

const instant = (text: string) => Date.parse(text);

describe("given an instant", () => {
  it.each([
    ["in the middle", "2027-01-15T12:00:00.000Z", "2027-01", "2027-02-01T00:00:00.000Z"],
    ["the first of a month", "2027-02-01T00:00:00.000Z", "2027-02", "2027-03-01T00:00:00.000Z"],
    ["the last of a year", "2027-12-31T23:59:59.999Z", "2027-12", "2028-01-01T00:00:00.000Z"],
    ["a leap year's February", "2028-02-29T23:00:00.000Z", "2028-02", "2028-03-01T00:00:00.000Z"],
  ])("knows the month that it lies in: %s", (_name, text, name, ends) => {
    const month = monthOf(instant(text));
    expect(month.name).toBe(name);
    expect(new Date(month.beganMs).toISOString()).toBe(`${name}-01T00:00:00.000Z`);
    expect(new Date(month.endsMs).toISOString()).toBe(ends);
  });
});

describe("given how much of a month is used", () => {
  const nowMs = instant("2027-01-31T23:00:00.500Z");
  const standing = { limit: 500_000, used: 499_000, month: monthOf(nowMs), nowMs };

  it("says what is left, until when, and what of", () => {
    expect(monthMember(standing)).toEqual({
      policy: '"monthly";q=500000;w=2678400',
      limit: '"monthly";r=1000;t=3600',
    });
  });

  it("says that nothing is left, and never less, when more is used than there was", () => {
    expect(monthMember({ ...standing, used: 600_000 }).limit).toBe('"monthly";r=0;t=3600');
  });

  it("asks clients to retry after 10 minutes, and tells the whole seconds to the month's end", () => {
    expect(monthProblem({ ...standing, used: 500_000 })).toEqual({
      rejected: "RATE_001",
      message:
        "All 500,000 requests that the organization's plan allows in a month are used until 2027-02-01T00:00:00Z. The operator raises it with a larger plan: PATCH /api/v1/organizations/:organizationId.",
      headers: {
        "retry-after": "600",
        "ratelimit-policy": '"monthly";q=500000;w=2678400',
        ratelimit: '"monthly";r=0;t=3600',
      },
    });
  });

  it("promises nothing for the next month to whose plan has no requests at all", () => {
    expect(monthProblem({ ...standing, limit: 0 }).message).toBe(
      "The organization's plan allows no requests. The operator raises it with a larger plan: PATCH /api/v1/organizations/:organizationId.",
    );
  });

  it("never says zero seconds", () => {
    const last = instant("2027-01-31T23:59:59.999Z");
    expect(monthProblem({ ...standing, nowMs: last }).headers).toMatchObject({
      "retry-after": "1",
      ratelimit: '"monthly";r=0;t=1',
    });
  });
});
