import { describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { evaluationsByHour, lastEvaluatedAt } from "../src/reports/flag-usage.ts";

/** The share of one flag in bulk responses. */
const createdAt = "2027-03-01T10:20:00.000Z";
const flagId = uuidv7({ msecs: Date.parse(createdAt) });
const at = (time: string) => new Date(`2027-03-01T${time}:00.000Z`);

const kept = (of: "flag" | "bulk", time: string, count: number) => ({ of, hour: at(time), count });

describe("evaluations by hour", () => {
  const hours = [
    kept("flag", "10:00", 3),
    kept("flag", "12:00", 4),
    kept("bulk", "13:00", 10),
    kept("bulk", "12:00", 100),
    kept("bulk", "10:00", 1_000),
    kept("bulk", "09:00", 1_000),
  ];

  it("are the flag's own and, from the hour of its creation, the bulk responses", () => {
    expect(evaluationsByHour(flagId, hours, { flag: null, bulk: at("13:30") })).toEqual([
      { hour: "2027-03-01T10:00:00.000Z", evaluations: 1_003 },
      { hour: "2027-03-01T12:00:00.000Z", evaluations: 104 },
      { hour: "2027-03-01T13:00:00.000Z", evaluations: 10 },
    ]);
  });

  it("are the flag's own if no bulk response followed its creation", () => {
    expect(evaluationsByHour(flagId, hours.slice(4), { flag: null, bulk: at("10:10") })).toEqual(
      [],
    );
  });

  it("include all bulk responses if the flag's id contains no creation time", () => {
    const old = "a0000000-0000-4000-8000-000000000000";
    const bulk = [kept("bulk", "09:00", 2)];
    expect(evaluationsByHour(old, bulk, { flag: null, bulk: at("09:30") })).toEqual([
      { hour: "2027-03-01T09:00:00.000Z", evaluations: 2 },
    ]);
  });
});

describe("the last evaluation of a flag", () => {
  it.each([
    { flag: null, bulk: null, last: null },
    { flag: at("10:30"), bulk: null, last: at("10:30") },
    { flag: null, bulk: at("10:40"), last: at("10:40") },
    { flag: at("10:30"), bulk: at("10:40"), last: at("10:40") },
    { flag: at("10:50"), bulk: at("10:40"), last: at("10:50") },
    { flag: null, bulk: at("10:10"), last: null },
    { flag: null, bulk: at("10:20"), last: at("10:20") },
  ])("is $last for its own at $flag and a bulk response at $bulk", ({ last, ...seen }) => {
    expect(lastEvaluatedAt(flagId, seen)).toEqual(last);
  });
});
