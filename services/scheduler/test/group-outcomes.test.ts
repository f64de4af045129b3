import { randomUUID } from "node:crypto";
import type { ScheduleResolved } from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";
import type { Settled } from "../src/dispatch/dispatch-store.ts";
import { groupOutcomes } from "../src/dispatch/settle-changes.ts";

const outcome = (): ScheduleResolved => ({
  ...{ id: randomUUID(), schedule_id: randomUUID(), outcome: "applied", reason: null },
  applied_at: "2030-01-01T00:00:00Z",
});
const settledOf = ({ id, schedule_id: scheduleId }: ScheduleResolved): Settled => ({
  ...{ id, scheduleId, dueAt: new Date(0), appliedAt: new Date(0), effect: "ended" },
});

describe("given outcomes that arrive while others are being recorded", () => {
  it("records them as one group, and returns to each its own", async () => {
    const groups: number[] = [];
    const first = Promise.withResolvers<void>();
    const record = groupOutcomes(async (resolved) => {
      groups.push(resolved.length);
      if (groups.length === 1) await first.promise;
      return resolved.map(settledOf);
    });
    const outcomes = Array.from({ length: 10 }, outcome);
    const results = outcomes.map((each) => record(each));
    first.resolve();
    expect((await Promise.all(results)).map((settled) => settled?.id)).toEqual(
      outcomes.map(({ id }) => id),
    );
    expect(groups).toEqual([1, 9]);
  });

  it("returns undefined to the second of two equal ones", async () => {
    const record = groupOutcomes(async (resolved) => resolved.slice(0, 1).map(settledOf));
    const [before, twice] = [outcome(), outcome()];
    const results = await Promise.all([record(before), record(twice), record(twice)]);
    expect(results.map((settled) => settled?.id)).toEqual([before.id, twice.id, undefined]);
  });

  it("lets only the one at fault fail", async () => {
    const faulty = outcome();
    const record = groupOutcomes(async (resolved) => {
      if (resolved.includes(faulty)) throw new Error("out of range");
      return resolved.map(settledOf);
    });
    const results = await Promise.allSettled([outcome(), outcome(), faulty, outcome()].map(record));
    expect(results.map(({ status }) => status)).toEqual([
      "fulfilled",
      "fulfilled",
      "rejected",
      "fulfilled",
    ]);
  });
});
