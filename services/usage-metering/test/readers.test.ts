import { randomUUID } from "node:crypto";
import { type EvaluationsReported, maxReaders, type Reader } from "@halyard/contracts";
import { eventually } from "@halyard/testing";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { countReports } from "../src/counting/count-reports.ts";
import { makeTenant, openMetering } from "./usage-fixture.ts";

/** The SDKs that report from applications, by environment. */

const metering = await openMetering();
afterAll(() => metering.close());
const replica = await metering.startReplica();
afterEach(() => metering.stepClock(0));

const sdk: Reader = { name: "@halyard/server-sdk", version: "0.2.0", knows: ["buckets", "values"] };
const minuteMs = 60_000;

async function newTenant() {
  const tenant = makeTenant();
  await metering.bucket.put(...tenant.entries);
  await eventually(() => replica.directory.environmentIdsOf(tenant.projectId).length === 2);
  return tenant;
}

type Tenant = Awaited<ReturnType<typeof newTenant>>;

/** Counts reports of an environment at a time, which is the present one by default. */
const count = (
  environment_id: string,
  readers: readonly (Reader | undefined)[],
  evaluated_at = new Date().toISOString(),
) =>
  countReports(
    replica.sql,
    readers.map(
      (reader): EvaluationsReported => ({
        ...{ report_id: randomUUID(), environment_id, evaluated_at, flags: [] },
        ...(reader && { reader }),
      }),
    ),
  );

const pathOf = ({ projectId }: Pick<Tenant, "projectId">, environmentId: string) =>
  `/api/v1/projects/${projectId}/environments/${environmentId}/readers`;

async function readersOf(tenant: Tenant, environmentId = tenant.environmentId) {
  const { status, body } = await replica.call(pathOf(tenant, environmentId), {
    key: tenant.serverKey,
  });
  expect(status).toBe(200);
  return body.readers;
}

/** Sets the clock, and returns a function for times relative to it. */
async function givenClock(at: string) {
  await metering.stepClock(Date.parse(at) - Date.now());
  return (minutes: number) => new Date(Date.parse(at) + minutes * minuteMs).toISOString();
}

describe("the readers of an environment", () => {
  it("are the SDKs that reported there, the latest first, with the features that they know", async () => {
    const tenant = await newTenant();
    const at = await givenClock("2031-05-15T10:30:00.000Z");
    const older = { ...sdk, version: "0.1.9", knows: [] };
    await count(tenant.environmentId, [older], at(-60));
    await count(tenant.environmentId, [sdk, undefined], at(-1));
    await count(tenant.otherEnvironmentId, [{ ...sdk, name: "other-sdk" }], at(-1));
    expect(await readersOf(tenant)).toEqual([
      { ...sdk, last_seen_at: at(-1) },
      { ...older, last_seen_at: at(-60) },
    ]);
    expect(await readersOf(tenant, tenant.otherEnvironmentId)).toMatchObject([
      { name: "other-sdk" },
    ]);
  });

  it("are none where nothing reported, and where SDKs do not name themselves", async () => {
    const tenant = await newTenant();
    await count(tenant.environmentId, [undefined]);
    expect(await readersOf(tenant)).toEqual([]);
  });

  it("are listed for seven days after their last report", async () => {
    const tenant = await newTenant();
    await givenClock("2031-05-08T10:30:00.000Z");
    await count(tenant.environmentId, [sdk], "2031-05-08T10:30:00.000Z");
    await givenClock("2031-05-15T10:29:00.000Z");
    expect(await readersOf(tenant)).toHaveLength(1);
    await givenClock("2031-05-15T10:30:01.000Z");
    expect(await readersOf(tenant)).toEqual([]);
  });

  it("have one row each, which is written at most every five minutes", async () => {
    const tenant = await newTenant();
    const at = await givenClock("2031-05-15T10:30:00.000Z");
    const { environmentId } = tenant;
    const written = async () => {
      const [row] = await metering.admin<{ version: string }[]>`
        select xmin::text as version from readers where environment_id = ${environmentId}`;
      return row?.version;
    };
    await count(environmentId, [sdk, sdk, sdk], at(-20));
    const first = await written();
    await count(environmentId, [sdk], at(-16));
    expect(await written()).toBe(first);
    const wiser = { ...sdk, knows: ["audiences", ...sdk.knows] };
    await count(environmentId, [wiser], at(-15));
    expect(await readersOf(tenant)).toEqual([{ ...wiser, last_seen_at: at(-15) }]);
  });

  it("keep the time of the latest report when an earlier one arrives late", async () => {
    const tenant = await newTenant();
    const at = await givenClock("2031-05-15T10:30:00.000Z");
    await count(tenant.environmentId, [sdk], at(-1));
    await count(tenant.environmentId, [{ ...sdk, knows: [] }], at(-30));
    expect(await readersOf(tenant)).toEqual([{ ...sdk, last_seen_at: at(-1) }]);
  });

  it("are at most 100 in an environment: those with the latest reports", async () => {
    const [tenant, other] = [await newTenant(), await newTenant()];
    const at = await givenClock("2031-05-15T10:30:00.000Z");
    const versions = (from: number, length: number) =>
      Array.from({ length }, (_, index) => ({ ...sdk, version: `1.0.${from + index}` }));
    await count(other.environmentId, [sdk], at(-200));
    await count(tenant.environmentId, versions(0, 20), at(-100));
    await count(tenant.environmentId, versions(20, 300), at(-50));
    await count(tenant.environmentId, [sdk], at(-1));
    const stored = await metering.admin`
      select version from readers where environment_id = ${tenant.environmentId}`;
    expect(stored).toHaveLength(maxReaders);
    expect(stored.map(({ version }) => version)).not.toContain("1.0.0");
    expect((await readersOf(tenant))[0]).toMatchObject(sdk);
    expect(await readersOf(other)).toHaveLength(1);
  });

  it("are recorded by concurrent transactions without deadlocks", async () => {
    const tenant = await newTenant();
    const readers = Array.from({ length: 120 }, (_, index) => ({ ...sdk, version: `${index}` }));
    await Promise.all(
      Array.from({ length: 8 }, (_, turn) =>
        count(tenant.environmentId, turn % 2 === 0 ? readers : readers.toReversed()),
      ),
    );
    expect((await readersOf(tenant)).length).toBe(maxReaders);
  });
});

describe("given a key", () => {
  const answer = async (key: string, path: string) => {
    const { status, body } = await replica.call(path, { key });
    return [status, body.error?.code];
  };

  it("rejects another project, another project's environment and an unknown one with 404", async () => {
    const [tenant, other] = [await newTenant(), await newTenant()];
    const notFound = [404, "NOT_FOUND_001"];
    for (const path of [
      pathOf(other, other.environmentId),
      pathOf(tenant, other.environmentId),
      pathOf(other, tenant.environmentId),
      pathOf(tenant, uuidv7()),
      pathOf(tenant, "production"),
    ])
      expect(await answer(tenant.serverKey, path)).toEqual(notFound);
  });

  it("lets a key of one environment read its own readers, and no others", async () => {
    const tenant = await newTenant();
    const { environmentOnlyKey: key } = tenant;
    const own = pathOf(tenant, tenant.environmentId.toUpperCase());
    expect(await answer(key, own)).toEqual([200, undefined]);
    const forbidden = [403, "AUTH_002"];
    expect(await answer(key, pathOf(tenant, tenant.otherEnvironmentId))).toEqual(forbidden);
    expect(await answer(tenant.clientKey, own)).toEqual(forbidden);
  });
});
