import { randomUUID } from "node:crypto";
import {
  checkUsageLastSeen,
  type EvaluationsReported,
  evaluationsStream,
  usageStream,
} from "@halyard/contracts";
import { eventually } from "@halyard/testing";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { cleanUp } from "../src/clean-up.ts";
import { countReports } from "../src/counting/count-reports.ts";
import { hourAgo, makeEdge, makeTenant, openMetering, type Replica } from "./usage-fixture.ts";

/** The counting of evaluations that applications report, with two replicas. */

const metering = await openMetering();
afterAll(() => metering.close());
const replicas = await Promise.all([metering.startReplica(), metering.startReplica()]);
afterEach(() => metering.stepClock(0));

const tenant = makeTenant();

function makeReport(fields: Partial<EvaluationsReported> = {}): EvaluationsReported {
  return {
    report_id: randomUUID(),
    environment_id: tenant.environmentId,
    evaluated_at: new Date().toISOString(),
    flags: [{ flag_id: uuidv7(), true: 3, false: 2 }],
    ...fields,
  };
}

const flagIdOf = ({ flags }: EvaluationsReported) => flags[0]?.flag_id ?? "";

/** Publishes messages without ids, so that the broker drops no duplicate, and waits until they are processed. */
async function send(...messages: readonly unknown[]): Promise<void> {
  const { subject } = evaluationsStream.reported;
  await eventually(() => metering.manager.streams.info(evaluationsStream.name).then(Boolean));
  for (const message of messages) await metering.client.publish(subject, JSON.stringify(message));
  await eventually(async () => {
    const { state } = await metering.manager.streams.info(evaluationsStream.name);
    return state.messages === 0;
  });
}

async function hoursOf(flagId: string): Promise<[hour: string, evaluations: number][]> {
  const rows = await metering.admin<{ hour: Date; evaluations: string }[]>`
    select hour, evaluations from flag_hours where flag_id = ${flagId} order by hour`;
  return rows.map(({ hour, evaluations }) => [hour.toISOString(), Number(evaluations)]);
}

describe("a report of an application", () => {
  it("counts once, in any number of messages", async () => {
    const reports = Array.from({ length: 50 }, () => makeReport());
    await send(...reports, ...reports.toReversed(), ...reports);
    for (const report of reports)
      expect(await hoursOf(flagIdOf(report))).toEqual([[expect.any(String), 5]]);
  });

  it("counts once in concurrent transactions", async () => {
    const report = makeReport();
    const counted = await Promise.all(
      Array.from({ length: 9 }, (_, at) =>
        countReports((replicas[at % 2] as Replica).sql, [report]),
      ),
    );
    expect(counted.toSorted()).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 1]);
    expect(await hoursOf(flagIdOf(report))).toEqual([[expect.any(String), 5]]);
  });

  it("adds nothing if its id belongs to an earlier report", async () => {
    const [first, second] = [makeReport(), makeReport()];
    await send(first);
    await send({ ...second, report_id: first.report_id.toUpperCase() });
    expect(await hoursOf(flagIdOf(first))).toHaveLength(1);
    expect(await hoursOf(flagIdOf(second))).toEqual([]);
  });

  it("counts in the hour of its end, up to seven days back, otherwise in the current hour", async () => {
    await metering.stepClock(Date.parse("2031-05-15T10:30:00.000Z") - Date.now());
    const flags = makeReport().flags;
    const report = (evaluated_at: string) => makeReport({ evaluated_at, flags });
    await send(
      report("2031-05-15T09:59:59.999Z"),
      report("2031-05-15T10:00:00.000Z"),
      report("2031-05-08T11:00:00.000Z"),
      report("1970-01-01T00:00:00.000Z"),
    );
    expect(await hoursOf(flags[0]?.flag_id ?? "")).toEqual([
      ["2031-05-08T11:00:00.000Z", 5],
      ["2031-05-15T09:00:00.000Z", 5],
      ["2031-05-15T10:00:00.000Z", 10],
    ]);
  });

  it("adds to the evaluations on edges in the usage of the flag, and to no requests", async () => {
    const own = makeTenant();
    const flag = own.flag();
    await metering.bucket.put(...own.entries, ...flag.entries);
    const usage = () =>
      replicas[0].call(`/api/v1/flags/${flag.flagId}/usage`, { key: own.serverKey });
    await eventually(async () => (await usage()).status === 200);
    const evaluated_at = new Date().toISOString();
    const evaluated = { flag_id: flag.flagId, evaluations: 1, evaluated_at: hourAgo(0) };
    await metering.send(makeEdge().message([own.used({ requests: {}, flags: [evaluated] })]));
    await send(
      makeReport({
        environment_id: own.environmentId,
        evaluated_at,
        flags: [{ flag_id: flag.flagId, true: 7, false: 4 }],
      }),
    );
    await metering.allProcessed();
    expect((await usage()).body.environments).toMatchObject([
      { name: "production", last_evaluated_at: evaluated_at, evaluations: 12 },
      { name: "staging", last_evaluated_at: null, evaluations: 0 },
    ]);
    expect(await metering.countedFor(own.organizationId)).toBe(0);
  });

  it("of a typed flag counts by variation too, in the hours of the question", async () => {
    await metering.stepClock(Date.parse("2031-06-15T10:30:00.000Z") - Date.now());
    const own = makeTenant();
    const flag = own.flag();
    await metering.bucket.put(...own.entries, ...flag.entries);
    const usage = async (hours: number) => {
      const path = `/api/v1/flags/${flag.flagId}/usage?hours=${hours}`;
      return (await replicas[0].call(path, { key: own.serverKey })).body;
    };
    await eventually(async () => (await usage(1)).environments?.length === 2);
    const report = (evaluated_at: string, counts: object) =>
      makeReport({
        ...{ environment_id: own.environmentId, evaluated_at },
        flags: [{ flag_id: flag.flagId, true: 0, false: 0, ...counts }],
      });
    await send(
      report("2031-06-15T10:10:00.000Z", { variations: { blue: 5, constructor: 7 } }),
      report("2031-06-15T10:20:00.000Z", { variations: { blue: 2, red: 7, none: 0 }, false: 4 }),
      report("2031-06-15T08:10:00.000Z", { variations: { green: 90 } }),
    );
    const [production, staging] = (await usage(1)).environments;
    expect(production).toMatchObject({
      evaluations: 25,
      by_hour: [{ hour: "2031-06-15T10:00:00.000Z", evaluations: 25 }],
      variations: [
        { key: "blue", evaluations: 7 },
        { key: "constructor", evaluations: 7 },
        { key: "red", evaluations: 7 },
      ],
    });
    expect(staging).not.toHaveProperty("variations");
    expect((await usage(3)).environments[0].variations[0]).toEqual({
      key: "green",
      evaluations: 90,
    });
  });

  it("sends the time of the last evaluation to management", async () => {
    const report = makeReport();
    await send(report);
    const { environment_id, evaluated_at } = report;
    const sent = await eventually(async () => {
      const { state } = await metering.manager.streams.info(usageStream.name);
      const messages = await Promise.all(
        Array.from({ length: state.last_seq - state.first_seq + 1 }, (_, at) =>
          metering.manager.streams.getMessage(usageStream.name, { seq: state.first_seq + at }),
        ),
      );
      const seen = messages.flatMap((message) => {
        const checked = checkUsageLastSeen(message?.json());
        return checked.ok ? checked.value.flags : [];
      });
      return seen.find(({ flag_id }) => flag_id === flagIdOf(report));
    });
    expect(sent).toEqual({ environment_id, flag_id: flagIdOf(report), evaluated_at });
  });

  it("with the largest counts neither overflows the sum nor blocks other reports", async () => {
    const most = Number.MAX_SAFE_INTEGER;
    const flags = [{ flag_id: uuidv7(), true: most, false: most, variations: { blue: most } }];
    const other = makeReport();
    await send(...Array.from({ length: 9 }, () => makeReport({ flags })), other);
    await send(makeReport({ flags }));
    expect(await hoursOf(flags[0]?.flag_id ?? "")).toEqual([[expect.any(String), most]]);
    expect(await hoursOf(flagIdOf(other))).toHaveLength(1);
  });

  it("is dead-lettered if it does not parse, and the others are counted", async () => {
    const good = makeReport();
    const bad = [
      "nonsense",
      {},
      { ...good, report_id: "report-1" },
      { ...good, flags: [{ flag_id: flagIdOf(good), true: -1, false: 0 }] },
      { ...good, flags: [{ flag_id: flagIdOf(good), true: 0, false: 0, variations: { "\0": 1 } }] },
      { ...good, reader: { name: "\0", version: "1", knows: [] } },
      { ...good, evaluated_at: "yesterday" },
    ];
    await send(...bad, { ...good, member_of_a_later_release: 1 });
    const subject = `set_aside.${evaluationsStream.reported.subject}`;
    const { state } = await metering.manager.streams.info("SET_ASIDE", {
      subjects_filter: subject,
    });
    expect(state.subjects?.[subject]).toBe(bad.length);
    expect(await hoursOf(flagIdOf(good))).toHaveLength(1);
  });

  it("is recognized for two days", async () => {
    const [young, old] = [randomUUID(), randomUUID()];
    await metering.admin`
      insert into counted_reports values
        (${young}, now() - interval '47 hours'), (${old}, now() - interval '49 hours')`;
    const usageMetrics = { rolledUp: () => undefined };
    const [{ sql }] = replicas;
    await cleanUp({ sql, usageMetrics, requestRetentionDays: undefined }, () => true);
    const left = await metering.admin`
      select report_id as id from counted_reports where report_id = any(${[young, old]}::uuid[])`;
    expect(left.map(({ id }) => id)).toEqual([young]);
  });
});
