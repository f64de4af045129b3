import { CalendarDateTime } from "@internationalized/date";
import { describe, expect, it } from "@jest/globals";
import { ApiProblem } from "../src/api/problem.ts";
import { findProblems, problemsIn, resolveLocal } from "../src/schedules/local-times.ts";
import {
  describeTimes,
  latenessText,
  outcomeText,
  remainingTimes,
  utcBeside,
  withoutEffect,
} from "../src/schedules/schedule-text.ts";

const now = new Date("2025-11-20T12:00:00Z");
const berlin = { zone: "Europe/Berlin", locale: "en-GB", now };
const losAngeles = { zone: "America/Los_Angeles", locale: "en-GB", now };
const at = (text: string) => new Date(text);
const on = (enable: string, disable: string | null = null) => ({
  enableAt: at(enable),
  disableAt: disable === null ? null : at(disable),
});

describe("the sentence about a schedule", () => {
  it("names a window in local time and in UTC", () => {
    expect(describeTimes(on("2025-11-24T08:00:00Z", "2025-11-24T17:00:00Z"), berlin)).toBe(
      "On from Mon 24 Nov, 09:00 to 18:00, your time (08:00–17:00 UTC)",
    );
  });

  it("describes a window that turns the flag off, and one without an end", () => {
    const off = { enableAt: at("2025-11-24T17:00:00Z"), disableAt: at("2025-11-24T08:00:00Z") };
    expect(describeTimes(off, berlin)).toBe(
      "Off from Mon 24 Nov, 09:00 to 18:00, your time (08:00–17:00 UTC)",
    );
    expect(describeTimes(on("2025-11-24T08:00:00Z"), berlin)).toBe(
      "On from Mon 24 Nov, 09:00, your time (08:00 UTC)",
    );
    expect(describeTimes({ enableAt: null, disableAt: null }, berlin)).toBeUndefined();
  });

  it("names every day that is not clear, and the year if it is another one", () => {
    expect(describeTimes(on("2025-11-25T04:00:00Z", "2025-11-26T04:30:00Z"), losAngeles)).toBe(
      "On from Mon 24 Nov, 20:00 to Tue 25 Nov, 20:30, your time (Tue 25 Nov, 04:00–Wed 26 Nov, 04:30 UTC)",
    );
    expect(describeTimes(on("2025-12-31T23:30:00Z"), berlin)).toBe(
      "On from Thu, 1 Jan 2026, 00:30, your time (Wed 31 Dec, 23:30 UTC)",
    );
  });

  it("does not repeat a time for people whose clock shows UTC", () => {
    expect(describeTimes(on("2025-11-24T08:00:00Z"), { ...berlin, zone: "UTC" })).toBe(
      "On from Mon 24 Nov, 08:00 UTC",
    );
    expect(describeTimes(on("2025-11-24T08:00:00Z"), { ...berlin, zone: "Europe/London" })).toBe(
      "On from Mon 24 Nov, 08:00 UTC",
    );
  });

  it("says when the first change has no effect", () => {
    const window = on("2025-11-24T08:00:00Z", "2025-11-24T17:00:00Z");
    expect(withoutEffect(window, true)).toContain("on already");
    expect(withoutEffect(window, false)).toBeUndefined();
    const off = { enableAt: null, disableAt: at("2025-11-24T08:00:00Z") };
    expect(withoutEffect(off, false)).toContain("off already");
  });

  it("leaves out what has happened", () => {
    const ended = { applied_at: null, lateness_ms: null };
    const changes = [
      { ...ended, action: "enable", at: "2025-11-24T08:00:00Z", state: "applied" },
      { ...ended, action: "disable", at: "2025-11-24T17:00:00Z", state: "pending" },
    ] as const;
    expect(describeTimes(remainingTimes({ changes: [...changes] }), berlin)).toBe(
      "Off from Mon 24 Nov, 18:00, your time (17:00 UTC)",
    );
  });
});

describe("a time beside UTC", () => {
  it("names the day only where it differs", () => {
    expect(utcBeside(at("2025-11-24T08:00:00Z"), berlin)).toBe("08:00 UTC");
    expect(utcBeside(at("2025-11-23T23:30:00Z"), berlin)).toBe("Sun 23 Nov, 23:30 UTC");
  });

  it("is in the words of the reader, with seconds only where they are not zero", () => {
    const american = { ...berlin, locale: "en-US" };
    expect(utcBeside(at("2025-11-23T23:30:15Z"), american)).toMatch(
      /^Sun, Nov 23, 11:30:15\sPM UTC$/,
    );
    expect(utcBeside(at("2025-11-24T08:00:00.500Z"), american)).toMatch(/^8:00\sAM UTC$/);
  });
});

describe("the outcome of a change", () => {
  it("contains how late it was", () => {
    const change = { action: "enable", at: "", applied_at: "", state: "applied" } as const;
    expect(outcomeText({ ...change, lateness_ms: 12 })).toBe("Applied 12 ms late");
    expect([999, 1_400, 180_000, 7_200_000].map(latenessText)).toEqual([
      "999 ms late",
      "1.4 s late",
      "3 min late",
      "2 h late",
    ]);
  });
});

describe("a local time", () => {
  it("that clocks skip is the time after the gap", () => {
    const skipped = new CalendarDateTime(2027, 3, 28, 2, 30);
    expect(resolveLocal(skipped, "Europe/Berlin", "first")).toEqual({
      kind: "skipped",
      instant: at("2027-03-28T01:30:00Z"),
    });
  });

  it("that comes twice is the one that was chosen", () => {
    const twice = new CalendarDateTime(2027, 10, 31, 2, 30);
    const resolve = (occurrence: "first" | "second") =>
      resolveLocal(twice, "Europe/Berlin", occurrence);
    expect(resolve("first")).toEqual({ kind: "twice", instant: at("2027-10-31T00:30:00Z") });
    expect(resolve("second")).toEqual({ kind: "twice", instant: at("2027-10-31T01:30:00Z") });
  });

  it("otherwise is one instant", () => {
    const usual = new CalendarDateTime(2027, 7, 1, 9, 0);
    expect(resolveLocal(usual, "Asia/Kolkata", "second")).toEqual({
      kind: "usual",
      instant: at("2027-07-01T03:30:00Z"),
    });
  });

  it("in the past, or equal to the other one, is a problem", () => {
    const past = at("2025-11-20T11:59:00Z");
    const future = at("2025-11-24T08:00:00Z");
    expect(findProblems({ enableAt: past, disableAt: future }, now)).toEqual({
      enable: expect.stringContaining("has passed"),
    });
    expect(findProblems({ enableAt: future, disableAt: at(future.toISOString()) }, now)).toEqual({
      disable: expect.stringContaining("at the same time"),
    });
    expect(findProblems({ enableAt: future, disableAt: null }, now)).toEqual({});
  });

  it("that the API rejects is a problem of its field", () => {
    const rejected = (message: string) =>
      new ApiProblem(message, { status: 400, code: "", requestId: null, retryAfter: null });
    expect(problemsIn(rejected("/disable_at must be in the future; it is …"))).toEqual({
      disable: "This time must be in the future; it is …",
    });
    expect(problemsIn(rejected("The service is unavailable."))).toEqual({});
  });
});
