import { describe, expect, it } from "@jest/globals";
import { monthMember, monthOf, monthProblem } from "../../src/admission/months.ts";

const instant = (text: string) => Date.parse(text);

describe("given an instant", () => {
  it.each([
    ["in the middle", "2027-01-15T12:00:00.000Z", "2027-01", "2027-02-01T00:00:00.000Z"],
    ["the first of a month", "2027-02-01T00:00:00.000Z", "2027-02", "2027-03-01T00:00:00.000Z"],
    ["the last of a year", "2027-12-31T23:59:59.999Z", "2027-12", "2028-01-01T00:00:00.000Z"],
    ["a leap year's February", "2028-02-29T23:00:00.000Z", "2028-02", "2028-03-01T00:00:00.000Z"],
  ])("returns its month: %s", (_name, text, name, ends) => {
    const month = monthOf(instant(text));
    expect(month.name).toBe(name);
    expect(new Date(month.beganMs).toISOString()).toBe(`${name}-01T00:00:00.000Z`);
    expect(new Date(month.endsMs).toISOString()).toBe(ends);
  });
});

describe("given the used requests of a month", () => {
  const nowMs = instant("2027-01-31T23:00:00.500Z");
  const monthUse = { limit: 500_000, used: 499_000, month: monthOf(nowMs), nowMs };

  it("reports the remaining requests, the time to the month's end and the limit", () => {
    expect(monthMember(monthUse)).toEqual({
      policy: '"monthly";q=500000;w=2678400',
      limit: '"monthly";r=1000;t=3600',
    });
  });

  it("reports zero remaining requests if more than the limit are used", () => {
    expect(monthMember({ ...monthUse, used: 600_000 }).limit).toBe('"monthly";r=0;t=3600');
  });

  it("sends a Retry-After of 10 minutes, and the full seconds to the month's end", () => {
    expect(monthProblem({ ...monthUse, used: 500_000 })).toEqual({
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

  it("does not mention the next month if the plan has no requests", () => {
    expect(monthProblem({ ...monthUse, limit: 0 }).message).toBe(
      "The organization's plan allows no requests. The operator raises it with a larger plan: PATCH /api/v1/organizations/:organizationId.",
    );
  });

  it("never reports zero seconds", () => {
    const last = instant("2027-01-31T23:59:59.999Z");
    expect(monthProblem({ ...monthUse, nowMs: last }).headers).toMatchObject({
      "retry-after": "1",
      ratelimit: '"monthly";r=0;t=1',
    });
  });
});
