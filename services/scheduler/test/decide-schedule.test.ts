import { isProblem } from "@halyard/http";
import { describe, expect, it } from "@jest/globals";
import { decideSchedule, type Schedule } from "../src/schedules/schedule.ts";

const now = new Date("2027-01-31T09:00:00.000Z");
const scope = { organizationId: "o", projectId: "p", environmentId: "e", flagId: "f" };
let drawn = 0;
const context = { userId: "ada", now, newId: () => `id-${++drawn}` };

const decide = (request: Parameters<typeof decideSchedule>[1]) =>
  decideSchedule(scope, request, context);
const accepted = (request: Parameters<typeof decideSchedule>[1]): Schedule => {
  const schedule = decide(request);
  if (isProblem(schedule)) throw new Error(schedule.message);
  return schedule;
};
const rejected = (request: Parameters<typeof decideSchedule>[1]) => {
  const schedule = decide(request);
  return isProblem(schedule) ? `${schedule.rejected} ${schedule.message}` : "accepted";
};

describe("a schedule", () => {
  it("with one time consists of one armed change", () => {
    const schedule = accepted({ enable_at: "2027-01-31T10:00:00.000Z" });
    expect(schedule).toMatchObject({
      ...scope,
      enableAt: new Date("2027-01-31T10:00:00.000Z"),
      disableAt: null,
      status: "pending",
      createdAt: now,
      createdBy: "ada",
    });
    expect(schedule.changes).toMatchObject([{ action: "enable", state: "armed" }]);
  });

  it("with two times consists of two changes in order, and the later one waits", () => {
    const on = { enable_at: "2027-01-31T10:00:00Z", disable_at: "2027-01-31T11:00:00Z" };
    const off = { enable_at: "2027-01-31T11:00:00Z", disable_at: "2027-01-31T10:00:00Z" };
    expect(accepted(on).changes.map(({ action, state }) => [action, state])).toEqual([
      ["enable", "armed"],
      ["disable", "waiting"],
    ]);
    expect(accepted(off).changes.map(({ action, state }) => [action, state])).toEqual([
      ["disable", "armed"],
      ["enable", "waiting"],
    ]);
  });

  it("accepts times with an offset, and treats null as absent", () => {
    const schedule = accepted({ enable_at: "2027-01-31T12:00:00+02:00", disable_at: null });
    expect(schedule.enableAt).toEqual(new Date("2027-01-31T10:00:00.000Z"));
    expect(schedule.changes).toHaveLength(1);
  });

  it("accepts times up to the year 9999", () => {
    expect(accepted({ enable_at: "9999-12-31T23:59:59.999Z" }).changes).toHaveLength(1);
    expect(rejected({ enable_at: "9999-12-31T23:59:59-01:00" })).toBe(
      "VALIDATION_001 /enable_at must be before the year 10000.",
    );
  });

  it.each([
    ["no time", {}, '"" (the whole document) must have enable_at, disable_at or both.'],
    [
      "only null",
      { enable_at: null },
      '"" (the whole document) must have enable_at, disable_at or both.',
    ],
    [
      "two equal times",
      { enable_at: "2027-01-31T10:00:00Z", disable_at: "2027-01-31T11:00:00+01:00" },
      "/disable_at must differ from /enable_at.",
    ],
    [
      "the current time",
      { enable_at: "2027-01-31T09:00:00Z" },
      "/enable_at must be in the future; it is 2027-01-31T09:00:00.000Z.",
    ],
    [
      "one time in the past",
      { enable_at: "2027-01-31T10:00:00Z", disable_at: "2027-01-31T08:59:59.999Z" },
      "/disable_at must be in the future; it is 2027-01-31T09:00:00.000Z.",
    ],
  ])("is rejected with %s", (_name, request, message) => {
    expect(rejected(request)).toBe(`VALIDATION_001 ${message}`);
  });
});
