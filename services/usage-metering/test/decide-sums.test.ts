import type { EnvironmentUsage, UsageRecorded } from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";
import { newestInstantMs, sumUp } from "../src/counting/decide-sums.ts";

/** What messages add up to. */
const now = Date.parse("2027-03-01T00:30:00.000Z");
const organization = "01900000-0000-7000-8000-000000000001";
const project = "01900000-0000-7000-8000-000000000002";
const environment = "01900000-0000-7000-8000-000000000003";
const flag = "01900000-0000-7000-8000-000000000004";
const hour = "2027-03-01T00:00:00.000Z";
const hourMs = Date.parse(hour);

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

function message(
  environments: EnvironmentUsage[],
  keys: UsageRecorded["keys"] = [],
): UsageRecorded {
  return { edge: "01900000-0000-7000-8000-00000000000e", sequence: 1, environments, keys };
}

describe("messages that are summed up", () => {
  it("add to a row for each endpoint and hour, and to one for each month", () => {
    const sums = sumUp(
      [
        message([used({ requests: { flags: 2, stream: 1 } })]),
        message([
          used({ requests: { flags: 3 } }),
          used({ requests: { flags: 5 }, hour: "2027-02-28T23:00:00Z" }),
        ]),
      ],
      now,
    );
    const here = { organizationId: organization, projectId: project, environmentId: environment };
    expect(sums.requests).toEqual([
      { ...here, endpoint: "flags", hourMs, requests: 5 },
      { ...here, endpoint: "stream", hourMs, requests: 1 },
      { ...here, endpoint: "flags", hourMs: Date.parse("2027-02-28T23:00:00Z"), requests: 5 },
    ]);
    expect(sums.months).toEqual([
      { organizationId: organization, month: "2027-03", requests: 6 },
      { organizationId: organization, month: "2027-02", requests: 5 },
    ]);
    expect(sums.misdated).toBe(0);
  });

  it("keep answers about all flags apart from those about one, and the latest instant of each", () => {
    const early = "2027-03-01T00:10:00.000Z";
    const late = "2027-03-01T00:20:00.000Z";
    const of = (at: string) => ({ flag_id: flag, evaluations: 4, evaluated_at: at });
    const sums = sumUp(
      [
        message([used({ bulk_answers: 7, bulk_answered_at: late, flags: [of(late)] })]),
        message([used({ bulk_answers: 1, bulk_answered_at: early, flags: [of(early)] })]),
      ],
      now,
    );
    const place = { flagId: flag, environmentId: environment };
    expect(sums).toMatchObject({
      bulkAnswers: [{ environmentId: environment, hourMs, answers: 8 }],
      flags: [{ ...place, hourMs, evaluations: 8 }],
      environmentsSeen: [{ environmentId: environment, atMs: Date.parse(late) }],
      flagsSeen: [{ ...place, atMs: Date.parse(late) }],
    });
  });

  it("count what a broken clock told in the present hour, and say how much that was", () => {
    const flags = [{ flag_id: flag, evaluations: 2, evaluated_at: "2031-01-01T00:00:00Z" }];
    const sums = sumUp(
      [message([used({ hour: "2031-01-01T00:00:00Z", requests: { evaluate: 2 }, flags })])],
      now,
    );
    expect(sums).toMatchObject({
      requests: [{ hourMs, requests: 2 }],
      months: [{ month: "2027-03" }],
      flags: [{ hourMs, evaluations: 2 }],
      flagsSeen: [{ atMs: now }],
      misdated: 2,
    });
  });

  it("take an id for the same in upper and lower case", () => {
    const shouting = used({
      environment_id: environment.toUpperCase(),
      organization_id: organization.toUpperCase(),
      requests: { flags: 1 },
    });
    const sums = sumUp([message([used({ requests: { flags: 1 } }), shouting])], now);
    expect(sums.requests).toMatchObject([{ requests: 2 }]);
  });

  it("come to nothing when they tell of nothing", () => {
    const { misdated, ...rows } = sumUp([message([used()]), message([])], now);
    expect(Object.values(rows).flat()).toEqual([]);
    expect(misdated).toBe(0);
  });
});

describe("the newest instant of a message", () => {
  it("is that of a key, a flag or an answer about all flags", () => {
    const at = (second: number) => `2027-03-01T00:00:0${second}.000Z`;
    const told = message(
      [
        used({
          bulk_answered_at: at(1),
          flags: [{ flag_id: flag, evaluations: 1, evaluated_at: at(3) }],
        }),
      ],
      [{ key_id: "aaaaaaaaaaaaaaaa", used_at: at(2) }],
    );
    expect(newestInstantMs(told)).toBe(Date.parse(at(3)));
    expect(newestInstantMs(message([used()]))).toBeUndefined();
  });
});
