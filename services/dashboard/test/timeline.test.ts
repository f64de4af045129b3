import { describe, expect, it } from "@jest/globals";
import type { Schedule, ScheduledChange } from "../src/api/schema.d.ts";
import {
  comingEntries,
  endedEntries,
  filterSchedules,
  groupByDay,
} from "../src/schedules/timeline.ts";

const change = (
  action: ScheduledChange["action"],
  at: string,
  ended: Partial<ScheduledChange> = {},
): ScheduledChange => ({
  action,
  at,
  state: "pending",
  applied_at: null,
  lateness_ms: null,
  ...ended,
});
const schedule = (
  id: string,
  changes: ScheduledChange[],
  ended: Partial<Schedule> = {},
): Schedule => ({
  id,
  flag_id: `flag ${id}`,
  environment_id: "production",
  enable_at: null,
  disable_at: null,
  status: "pending",
  changes,
  created_at: "2025-11-01T00:00:00.000Z",
  created_by: "ada",
  cancelled_at: null,
  cancelled_by: null,
  ...ended,
});

const window = schedule("window", [
  change("enable", "2025-11-21T08:00:00.000Z"),
  change("disable", "2025-11-23T08:00:00.000Z"),
]);
const between = schedule("between", [change("enable", "2025-11-22T08:00:00.000Z")]);
const idsOf = (entries: readonly { schedule: Schedule; change: ScheduledChange }[]) =>
  entries.map((entry) => `${entry.schedule.id} ${entry.change.action}`);

describe("the timeline", () => {
  it("orders the coming changes of all schedules by their time", () => {
    expect(idsOf(comingEntries([window, between]))).toEqual([
      "window enable",
      "between enable",
      "window disable",
    ]);
  });

  it("shows ended changes at the time at which they took effect or were cancelled, the latest first", () => {
    const applied = { state: "applied", applied_at: "2025-11-10T08:00:00.020Z" } as const;
    const half = schedule("half", [
      change("enable", "2025-11-10T08:00:00.000Z", applied),
      change("disable", "2025-11-30T08:00:00.000Z"),
    ]);
    const cleared = schedule(
      "cleared",
      [change("enable", "2099-01-01T00:00:00.000Z", { state: "cancelled" })],
      { status: "cancelled", cancelled_at: "2025-11-12T08:00:00.000Z" },
    );
    const entries = endedEntries([half, cleared]);
    expect(idsOf(entries)).toEqual(["cleared enable", "half enable"]);
    expect(entries.map(({ at }) => at.toISOString())).toEqual([
      "2025-11-12T08:00:00.000Z",
      "2025-11-10T08:00:00.020Z",
    ]);
  });

  it("groups by the day of the reader", () => {
    const late = schedule("late", [change("enable", "2025-11-20T23:30:00.000Z")]);
    const reader = {
      zone: "Europe/Berlin",
      locale: "en-GB",
      now: new Date("2025-11-20T12:00:00Z"),
    };
    const days = groupByDay(comingEntries([window, late]), reader);
    expect(days.map(({ label, entries }) => [label, idsOf(entries)])).toEqual([
      ["Tomorrow, Fri 21 Nov", ["late enable", "window enable"]],
      ["Sun 23 Nov", ["window disable"]],
    ]);
  });

  it("filters by flag and environment", () => {
    const keys = new Map([
      ["flag window", "Checkout"],
      ["flag between", "search"],
    ]);
    const filter = (text: string, environmentId?: string) =>
      filterSchedules([window, between], { text, environmentId }, (id) => keys.get(id)).map(
        ({ id }) => id,
      );
    expect(filter("check")).toEqual(["window"]);
    expect(filter("", "staging")).toEqual([]);
    expect(filter("", "production")).toEqual(["window", "between"]);
  });
});
