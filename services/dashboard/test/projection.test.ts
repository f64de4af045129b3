import { describe, expect, it } from "@jest/globals";
import { addDays, daysOf, monthsSince } from "../src/usage/months.ts";
import { expectedDays, projectMonth } from "../src/usage/projection.ts";

/** A response with the same number of requests on every day, and another number today. */
const steady = (options: { from: string; today: string; perDay: number; soFar?: number }) => {
  const days = [];
  for (let date = options.from; date < options.today; date = addDays(date, 1))
    days.push({ date, requests: options.perDay });
  return [...days, { date: options.today, requests: options.soFar ?? 0 }];
};

describe("given 100 requests on each of the last days", () => {
  const days = steady({ from: "2026-10-25", today: "2026-11-11", perDay: 100, soFar: 30 });
  const usage = { days, known_since: "2026-08-01" };

  it("projects the month from its requests so far, and the pace for today and later days", () => {
    expect(projectMonth(usage, null)).toMatchObject({ used: 1_030, pace: 100, total: 3_000 });
  });

  it.each([
    { limit: null, outlook: "unlimited", reachedOn: undefined },
    { limit: 10_000, outlook: "enough", reachedOn: undefined },
    { limit: 3_100, outlook: "tight", reachedOn: undefined },
    { limit: 2_000, outlook: "exceeds", reachedOn: "2026-11-20" },
    { limit: 1_030, outlook: "reached", reachedOn: "2026-11-11" },
  ])("calls a limit of $limit $outlook", ({ limit, outlook, reachedOn }) => {
    expect(projectMonth(usage, limit)).toMatchObject({ outlook, reachedOn });
  });

  it("expects no further requests today when today is above the pace", () => {
    const busy = [...days.slice(0, -1), { date: "2026-11-11", requests: 500 }];
    expect(projectMonth({ ...usage, days: busy }, null)?.total).toBe(3_400);
  });
});

describe("given little data", () => {
  it("uses only complete days, which the first day with requests is not", () => {
    const days = steady({ from: "2026-11-01", today: "2026-11-04", perDay: 0 });
    const usage = {
      days: days
        .with(1, { date: "2026-11-02", requests: 1 })
        .with(2, { date: "2026-11-03", requests: 60 }),
      known_since: "2026-11-02",
    };
    expect(projectMonth(usage, null)).toMatchObject({ pace: 60, measuredDays: 1 });
  });

  it("uses the last days of the month before on the first of a month", () => {
    const days = steady({ from: "2026-10-25", today: "2026-11-01", perDay: 70 });
    const projection = projectMonth({ days, known_since: "2026-08-01" }, null);
    expect(projection).toMatchObject({ used: 0, pace: 70, measuredDays: 7, total: 2_100 });
  });

  it("projects nothing before one day is complete", () => {
    const days = steady({ from: "2026-11-01", today: "2026-11-04", perDay: 0, soFar: 9 });
    expect(projectMonth({ days, known_since: "2026-11-04" }, 100)).toBeUndefined();
    expect(projectMonth({ days, known_since: "2026-11-03" }, 100)).toBeUndefined();
    expect(projectMonth({ days, known_since: null }, 100)).toBeUndefined();
  });
});

it("shows every day of a month, and expects requests only from today on", () => {
  const rows = expectedDays("2026-02", [{ date: "2026-02-27", requests: 4 }], 10);
  expect(rows).toHaveLength(28);
  expect(rows.slice(-3)).toEqual([
    { date: "2026-02-26", requests: 0, expected: 0 },
    { date: "2026-02-27", requests: 4, expected: 6 },
    { date: "2026-02-28", requests: 0, expected: 10 },
  ]);
});

it("offers all months since the first counted request, across years", () => {
  expect(monthsSince("2025-11-30", "2026-01")).toEqual(["2026-01", "2025-12", "2025-11"]);
  expect(monthsSince(null, "2026-01")).toEqual(["2026-01"]);
  expect(daysOf("2028-02").at(-1)).toBe("2028-02-29");
});
