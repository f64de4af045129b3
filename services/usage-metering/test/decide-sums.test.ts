import type { EnvironmentUsage, UsageRecorded } from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";
import { newestInstantMs, sumUp } from "../src/counting/decide-sums.ts";
import { sumTables } from "../src/counting/sum-tables.ts";

/** The sums of messages. */
const now = Date.parse("2027-03-01T00:30:00.000Z");
const organization = "01900000-0000-7000-8000-000000000001";
const project = "01900000-0000-7000-8000-000000000002";
const environment = "01900000-0000-7000-8000-000000000003";
const flag = "01900000-0000-7000-8000-000000000004";
const hour = "2027-03-01T00:00:00.000Z";

function used(usage: Partial<EnvironmentUsage> = {}): EnvironmentUsage {
  return {
    hour,
    organization_id: organization,
    project_id: project,
    environment_id: environment,
    requests: {},
    bulk_answers: 0,
    bulk_answered_at: null,
    flags: [],
    ...usage,
  };
}

/** Returns the rows of each table by name. */
function sumsOf(messages: UsageRecorded[]) {
  const { rows, misdated } = sumUp(messages, now);
  const named = Object.entries(sumTables).map(([name, table]) => [name, rows.get(table)]);
  return { ...Object.fromEntries(named), misdated };
}

function message(
  environments: EnvironmentUsage[],
  keys: UsageRecorded["keys"] = [],
): UsageRecorded {
  return { edge: "01900000-0000-7000-8000-00000000000e", sequence: 1, environments, keys };
}

describe("the sums of messages", () => {
  it("have a row for each endpoint and hour, and one for each month", () => {
    const sums = sumsOf([
      message([used({ requests: { flags: 2, stream: 1 } })]),
      message([
        used({ requests: { flags: 3 } }),
        used({ requests: { flags: 5 }, hour: "2027-02-28T23:00:00Z" }),
      ]),
    ]);
    const here = {
      organization_id: organization,
      project_id: project,
      environment_id: environment,
    };
    expect(sums.requests).toEqual([
      { ...here, endpoint: "flags", hour, requests: 5 },
      { ...here, endpoint: "stream", hour, requests: 1 },
      { ...here, endpoint: "flags", hour: "2027-02-28T23:00:00.000Z", requests: 5 },
    ]);
    expect(sums.months).toEqual([
      { organization_id: organization, month: "2027-03-01", requests: 6 },
      { organization_id: organization, month: "2027-02-01", requests: 5 },
    ]);
    expect(sums.misdated).toBe(0);
  });

  it("separate bulk responses from evaluations of one flag, with the latest time of each", () => {
    const early = "2027-03-01T00:10:00.000Z";
    const late = "2027-03-01T00:20:00.000Z";
    const of = (at: string) => ({ flag_id: flag, evaluations: 4, evaluated_at: at });
    const sums = sumsOf([
      message([used({ bulk_answers: 7, bulk_answered_at: late, flags: [of(late)] })]),
      message([used({ bulk_answers: 1, bulk_answered_at: early, flags: [of(early)] })]),
    ]);
    const scope = { flag_id: flag, environment_id: environment };
    expect(sums).toMatchObject({
      bulkAnswers: [{ environment_id: environment, hour, answers: 8 }],
      flags: [{ ...scope, hour, evaluations: 8 }],
      environmentsSeen: [{ environment_id: environment, evaluated_at: late }],
      flagsSeen: [{ ...scope, evaluated_at: late }],
    });
  });

  it("have a row for each variation of a typed flag", () => {
    const of = (variations: Record<string, number>) => ({
      ...{ flag_id: flag, evaluations: 9, evaluated_at: hour, variations },
    });
    const sums = sumsOf([
      message([used({ flags: [of({ blue: 4, red: 1 })] })]),
      message([used({ flags: [of({ blue: 2 })] })]),
    ]);
    const scope = { flag_id: flag, environment_id: environment, hour };
    expect(sums.variations).toEqual([
      { ...scope, variation: "blue", evaluations: 6 },
      { ...scope, variation: "red", evaluations: 1 },
    ]);
    expect(sums.flags).toEqual([{ ...scope, evaluations: 18 }]);
  });

  it("count usage of a wrong clock in the current hour, with the number of misdated requests", () => {
    const flags = [{ flag_id: flag, evaluations: 2, evaluated_at: "2031-01-01T00:00:00Z" }];
    const sums = sumsOf([
      message([used({ hour: "2031-01-01T00:00:00Z", requests: { evaluate: 2 }, flags })]),
    ]);
    expect(sums).toMatchObject({
      requests: [{ hour, requests: 2 }],
      months: [{ month: "2027-03-01" }],
      flags: [{ hour, evaluations: 2 }],
      flagsSeen: [{ evaluated_at: new Date(now).toISOString() }],
      misdated: 2,
    });
  });

  it("treat ids in upper and lower case as equal", () => {
    const shouting = used({
      environment_id: environment.toUpperCase(),
      organization_id: organization.toUpperCase(),
      requests: { flags: 1 },
    });
    const sums = sumsOf([message([used({ requests: { flags: 1 } }), shouting])]);
    expect(sums.requests).toMatchObject([{ requests: 2 }]);
  });

  it("are empty for messages without usage", () => {
    const { misdated, ...rows } = sumsOf([message([used()]), message([])]);
    expect(Object.values(rows).flat()).toEqual([]);
    expect(misdated).toBe(0);
  });
});

describe("the newest time in a message", () => {
  it("is that of a key, a flag or a bulk response", () => {
    const at = (second: number) => `2027-03-01T00:00:0${second}.000Z`;
    const sent = message(
      [
        used({
          bulk_answered_at: at(1),
          flags: [{ flag_id: flag, evaluations: 1, evaluated_at: at(3) }],
        }),
      ],
      [{ key_id: "aaaaaaaaaaaaaaaa", used_at: at(2) }],
    );
    expect(newestInstantMs(sent)).toBe(Date.parse(at(3)));
    expect(newestInstantMs(message([used()]))).toBeUndefined();
  });
});
