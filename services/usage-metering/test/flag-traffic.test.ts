import { eventually } from "@halyard/testing";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { addBaselines } from "../src/retention/flag-baselines.ts";
import { makeEdge, makeTenant, openMetering, type Tenant } from "./usage-fixture.ts";

/** The flags of a project by evaluations. */
const edge = makeEdge();

const metering = await openMetering();
afterAll(() => metering.close());
const replica = await metering.startReplica();
afterEach(async () => {
  await metering.stepClock(0);
  await metering.admin`truncate flag_baselines`;
});

const setClock = (instant: string) => metering.stepClock(Date.parse(instant) - Date.now());

/** Creates a tenant with flags, each from the given time. */
async function newTenant(...createdAt: string[]): Promise<{ tenant: Tenant; flagIds: string[] }> {
  const tenant = makeTenant();
  const flags = createdAt.map((each) => tenant.flag(uuidv7({ msecs: Date.parse(each) })));
  await metering.bucket.put(...tenant.entries, ...flags.flatMap(({ entries }) => entries));
  const keys = [tenant.serverKey, tenant.environmentOnlyKey, tenant.clientKey];
  await eventually(
    () =>
      keys.every((key) => replica.keys.verify(key, Date.now()) !== undefined) &&
      replica.directory.flagIdsOf(tenant.otherEnvironmentId).length === flags.length,
  );
  return { tenant, flagIds: flags.map(({ flagId }) => flagId) };
}

async function count(...usage: Parameters<typeof edge.message>[0]): Promise<void> {
  await metering.send(edge.message(usage));
  await metering.allProcessed();
}

const evaluated = (flag_id: string | undefined, evaluations: number, evaluated_at: string) => ({
  flag_id: flag_id ?? "",
  evaluations,
  evaluated_at,
});

async function traffic(query: string, key: string) {
  const { status, body } = await replica.call(`/api/v1/usage/flags${query}`, { key });
  return { status, ...body };
}
const evaluationsOf = ({ flags }: { flags: { evaluations: number }[] }) =>
  flags.map(({ evaluations }) => evaluations);

const old = "2020-01-01T00:00:00.000Z";
const older = "2019-01-01T00:00:00.000Z";

describe("the flags of a project by evaluations", () => {
  it("have the sums and the last evaluation of all environments, including bulk responses", async () => {
    await setClock("2031-05-15T10:30:00.000Z");
    const recent = "2031-05-15T09:10:00.000Z";
    const { tenant, flagIds } = await newTenant(older, old, recent);
    const [first, second, young] = flagIds;
    await count(
      tenant.used({
        hour: "2031-05-15T08:00:00.000Z",
        flags: [evaluated(first, 4, "2031-05-15T08:20:00.000Z")],
        bulk_answers: 100,
        bulk_answered_at: "2031-05-15T08:30:00.000Z",
      }),
      tenant.used({
        environment_id: tenant.otherEnvironmentId,
        hour: "2031-05-15T09:00:00.000Z",
        flags: [
          evaluated(first, 1, "2031-05-15T09:50:00.000Z"),
          evaluated(second, 50, "2031-05-15T09:15:00.000Z"),
        ],
        bulk_answers: 10,
        bulk_answered_at: "2031-05-15T09:30:00.000Z",
      }),
    );
    const late = { hour: "2031-05-15T07:00:00.000Z" };
    await count(tenant.used({ ...late, flags: [evaluated(first, 2, "2031-05-15T07:55:00.000Z")] }));
    expect(await traffic("", tenant.serverKey)).toEqual({
      status: 200,
      hours: 24,
      since: "2031-05-15T00:00:00.000Z",
      flags: [
        { flag_id: second, evaluations: 160, last_evaluated_at: "2031-05-15T09:30:00.000Z" },
        { flag_id: first, evaluations: 117, last_evaluated_at: "2031-05-15T09:50:00.000Z" },
        { flag_id: young, evaluations: 10, last_evaluated_at: "2031-05-15T09:30:00.000Z" },
      ],
    });
    const here = [first, second, young].map((flag_id, index) => ({
      flag_id,
      evaluations: [106, 100, 0][index],
      last_evaluated_at: index === 2 ? null : "2031-05-15T08:30:00.000Z",
    }));
    const query = `?environment_id=${tenant.environmentId.toUpperCase()}`;
    expect((await traffic(query, tenant.serverKey)).flags).toEqual(here);
    expect((await traffic("", tenant.environmentOnlyKey)).flags).toEqual(here);
  });

  it("are listed in either order, up to a limit, including those without evaluations", async () => {
    const { tenant, flagIds } = await newTenant(older, old, old);
    const [unused, used] = flagIds;
    const at = new Date().toISOString();
    await count(tenant.used({ flags: [evaluated(used, 3, at)] }));
    expect(evaluationsOf(await traffic("", tenant.serverKey))).toEqual([3, 0, 0]);
    const { flags: most } = await traffic("?order=most&limit=1", tenant.serverKey);
    expect(most).toMatchObject([{ flag_id: used, evaluations: 3 }]);
    const { flags: least } = await traffic("?order=least&limit=1", tenant.serverKey);
    expect(least).toEqual([{ flag_id: unused, evaluations: 0, last_evaluated_at: null }]);
  });

  it("are at most the largest number that JSON readers represent exactly", async () => {
    const { tenant, flagIds } = await newTenant(old);
    const most = Number.MAX_SAFE_INTEGER;
    const flags = [evaluated(flagIds[0], most, new Date().toISOString())];
    await count(
      tenant.used({ flags }),
      tenant.used({ environment_id: tenant.otherEnvironmentId, flags }),
    );
    const report = await traffic("", tenant.serverKey);
    expect([report.status, evaluationsOf(report)]).toEqual([200, [most]]);
  });

  it("cover whole days, back to the day of the first hour, over the end of a month", async () => {
    const { tenant, flagIds } = await newTenant(old);
    const days = { "2031-08-30": 2, "2031-08-31": 3, "2031-09-01": 5, "2031-09-02": 7 };
    for (const [day, evaluations] of Object.entries(days)) {
      await setClock(`${day}T10:30:00.000Z`);
      const hour = `${day}T10:00:00.000Z`;
      await count(tenant.used({ hour, flags: [evaluated(flagIds[0], evaluations, hour)] }));
      await addBaselines(replica.sql);
      expect(await addBaselines(replica.sql)).toBe(0);
    }
    const sinceHours = async (hours: number) => {
      const report = await traffic(`?hours=${hours}`, tenant.serverKey);
      return [report.since, ...evaluationsOf(report)];
    };
    expect(await sinceHours(1)).toEqual(["2031-09-02T00:00:00.000Z", 7]);
    expect(await sinceHours(24)).toEqual(["2031-09-01T00:00:00.000Z", 12]);
    expect(await sinceHours(48)).toEqual(["2031-08-31T00:00:00.000Z", 15]);
    // There are no baselines of earlier days.
    expect(await sinceHours(720)).toEqual(["2031-08-30T00:00:00.000Z", 17]);
    const path = `/api/v1/flags/${flagIds[0]}/usage?hours=720`;
    const { body } = await replica.call(path, { key: tenant.serverKey });
    expect(body.environments[0].evaluations).toBe(17);
  });

  it("are those of the project", async () => {
    const [own, others] = await Promise.all([newTenant(old), newTenant(old)]);
    const { flags } = await traffic("", own.tenant.serverKey);
    expect(flags).toMatchObject([{ flag_id: own.flagIds[0] }]);
    const status = async (environmentId: string, key: string) =>
      (await traffic(`?environment_id=${environmentId}`, key)).status;
    const { tenant } = own;
    expect(await status(others.tenant.environmentId, tenant.serverKey)).toBe(404);
    expect(await status(uuidv7(), tenant.serverKey)).toBe(404);
    expect(await status(tenant.otherEnvironmentId, tenant.environmentOnlyKey)).toBe(403);
    expect(await status(tenant.environmentId, tenant.clientKey)).toBe(403);
  });

  it.each(["hours=0", "hours=721", "limit=0", "limit=1001", "order=best", "environment_id=a"])(
    "are rejected for %s",
    async (query) => {
      const { tenant } = await newTenant(old);
      const { status, error } = await traffic(`?${query}`, tenant.serverKey);
      expect([status, error.code]).toEqual([400, "VALIDATION_001"]);
    },
  );
});
