import type { EvaluationsReported, UsageReport } from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";
import { decideReport } from "../../src/usage/decide-report.ts";
import { reportIdOf } from "../../src/usage/publish-report.ts";
import { id } from "../builders.ts";

const nowMs = Date.parse("2027-01-31T09:58:00.000Z");
const period = { start: "2027-01-31T09:56:00Z", end: "2027-01-31T09:57:00Z" };
const colors = ["blue", "red", "constructor"].map((key) => ({ key, json: `"${key}"` }));
const flags = new Map([
  ["alpha", { flag_id: id("flag", 1) }],
  ["beta", { flag_id: id("flag", 2) }],
  ["color", { flag_id: id("flag", 3), variations: colors }],
]);

function decide(
  report: Partial<UsageReport>,
  find: Parameters<typeof decideReport>[1]["find"] = (key) => flags.get(key),
) {
  return decideReport(
    { period, flags: {}, ...report },
    { reportId: id("epoch"), environmentId: id("env"), find, nowMs },
  );
}

describe("a report", () => {
  it("has the ids of known flags with evaluations, and the end of its period", () => {
    const reported = {
      alpha: { true: 12, false: 3 },
      beta: { false: 1 },
      unknown: { true: 1 },
    };
    expect(decide({ flags: reported })).toEqual({
      report_id: id("epoch"),
      environment_id: id("env"),
      evaluated_at: "2027-01-31T09:57:00.000Z",
      flags: [
        { flag_id: id("flag", 1), true: 12, false: 3 },
        { flag_id: id("flag", 2), true: 0, false: 1 },
      ],
    });
  });

  it("has the counts of a typed flag by variation, and those of the application's default", () => {
    const variations = { blue: 7, constructor: 2 };
    expect(decide({ flags: { color: { false: 4, variations } } })).toMatchObject({
      flags: [{ flag_id: id("flag", 3), true: 0, false: 4, variations }],
    });
  });

  it("leaves out variations that the flag does not have, and those without evaluations", () => {
    const variations = { blue: 7, red: 0, toString: 1, green: 5 };
    const reported = { color: { variations }, alpha: { variations: { on: 1 } } };
    const { flags: counted } = decide({ flags: reported }) as EvaluationsReported;
    expect(counted.map((flag) => flag.variations)).toEqual([{ blue: 7 }]);
  });

  it("names the SDK, with the features that it knows once and in alphabetical order", () => {
    const sdk = { name: "sdk", version: "1.0.0", knows: ["values", "buckets", "values"] };
    expect(decide({ sdk })).toMatchObject({ reader: { ...sdk, knows: ["buckets", "values"] } });
    expect(decide({})).not.toHaveProperty("reader");
  });

  it.each([{}, { true: 0 }, { true: 0, false: 0 }, { variations: { blue: 0 } }])(
    "leaves out a flag with %j",
    (counts) => {
      expect(decide({ flags: { color: counts } })).toMatchObject({ flags: [] });
    },
  );

  it.each([
    ["ends when it begins", period.start, period.start],
    ["lasts 24 hours", "2027-01-30T09:57:00Z", period.end],
    ["has another time zone", "2027-01-31T10:56:00+01:00", period.end],
    ["is years old", "2020-01-01T00:00:00Z", "2020-01-01T00:01:00Z"],
  ])("is accepted if its period %s", (_what, start, end) => {
    expect(decide({ period: { start, end } })).toHaveProperty("evaluated_at");
  });

  it("ends now if the application's clock is up to five minutes ahead", () => {
    const ahead = { start: period.start, end: "2027-01-31T10:03:00Z" };
    expect(decide({ period: ahead })).toMatchObject({ evaluated_at: "2027-01-31T09:58:00.000Z" });
  });

  it.each([
    ["ends before it begins", period.end, "2027-01-31T09:56:59.999Z", /must not be before/],
    ["is longer than 24 hours", "2027-01-30T09:56:59.999Z", period.end, /at most 24 hours/],
    ["ends in the future", period.start, "2027-01-31T10:03:00.001Z", /must not be in the future/],
  ])("is rejected if its period %s", (_what, start, end, message) => {
    expect(decide({ period: { start, end } })).toMatchObject({
      rejected: "VALIDATION_001",
      message: expect.stringMatching(message),
    });
  });

  it("is below a third of NATS's default limit with as many flags as a body has room for", () => {
    const letters = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"];
    const keys = letters.flatMap((first) =>
      ["", ...letters, ".", "_", "-"].map((second) => first + second),
    );
    const reported = Object.fromEntries(keys.map((key) => [key, { true: 1 }]));
    const bodyBytes = JSON.stringify({ period, flags: reported }).length;
    expect(bodyBytes).toBeGreaterThan(63 * 1024);
    expect(bodyBytes).toBeLessThanOrEqual(64 * 1024);
    const decided = decide({ flags: reported }, () => ({ flag_id: id("flag") }));
    expect(decided).toMatchObject({ flags: { length: keys.length } });
    expect(JSON.stringify(decided).length).toBeLessThan((1024 * 1024) / 3);
  });
});

describe("the id of a report", () => {
  it("depends on the API key and the Idempotency-Key alone, and is a UUID", () => {
    const ids = [
      reportIdOf("key-1", "report-1"),
      reportIdOf("key-1", "report-2"),
      reportIdOf("key-2", "report-1"),
    ];
    expect(new Set(ids).size).toBe(3);
    expect(reportIdOf("key-1", "report-1")).toBe(ids[0]);
    for (const one of ids)
      expect(one).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/);
  });
});
