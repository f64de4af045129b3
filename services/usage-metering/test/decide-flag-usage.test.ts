import { describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { evaluationsByHour, lastEvaluatedAt } from "../src/reports/decide-flag-usage.ts";

/** What answers about all flags mean for one of them. */
const createdAt = "2027-03-01T10:20:00.000Z";
const flagId = uuidv7({ msecs: Date.parse(createdAt) });
const at = (time: string) => new Date(`2027-03-01T${time}:00.000Z`);

describe("evaluations by hour", () => {
  it("are those of the flag by itself, and of all flags in hours that began after it was created", () => {
    const hours = evaluationsByHour(flagId, {
      flag: [
        { hour: at("10:00"), count: 3 },
        { hour: at("12:00"), count: 4 },
      ],
      bulk: [
        { hour: at("13:00"), count: 10 },
        { hour: at("12:00"), count: 100 },
        { hour: at("10:00"), count: 1_000 },
        { hour: at("09:00"), count: 1_000 },
      ],
    });
    expect(hours).toEqual([
      { hour: at("10:00"), count: 3 },
      { hour: at("12:00"), count: 104 },
      { hour: at("13:00"), count: 10 },
    ]);
  });

  it("have all answers for a flag whose id does not say when it was created", () => {
    const old = "a0000000-0000-4000-8000-000000000000";
    const bulk = [{ hour: at("09:00"), count: 2 }];
    expect(evaluationsByHour(old, { flag: [], bulk })).toEqual(bulk);
  });
});

describe("when a flag was last evaluated", () => {
  it.each([
    { flag: null, bulk: null, last: null },
    { flag: at("10:30"), bulk: null, last: at("10:30") },
    { flag: null, bulk: at("10:40"), last: at("10:40") },
    { flag: at("10:30"), bulk: at("10:40"), last: at("10:40") },
    { flag: at("10:50"), bulk: at("10:40"), last: at("10:50") },
    { flag: null, bulk: at("10:10"), last: null },
    { flag: null, bulk: at("10:20"), last: at("10:20") },
  ])("is $last where it was seen at $flag and with all others at $bulk", ({ last, ...seen }) => {
    expect(lastEvaluatedAt(flagId, seen)).toEqual(last);
  });
});
