import { type QuotaEntry, quotaBucket } from "@halyard/contracts";
import { eventually } from "@halyard/testing";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { isUpdate } from "../src/quota/quota-publisher.ts";
import { makeEdge, makeTenant, openMetering, type Tenant } from "./usage-fixture.ts";

/** The quotas of the current month that edges receive. */

const metering = await openMetering();
afterAll(() => metering.close());
const replicas = await Promise.all([1, 2].map(() => metering.startReplica()));
afterEach(() => metering.stepClock(0));

const setClock = (instant: string) => metering.stepClock(Date.parse(instant) - Date.now());

const published = (tenant: Tenant, entry: { month: string; requests: number }) =>
  eventually(
    async () => {
      const found = await metering.quotaOf(tenant.organizationId);
      return found?.month === entry.month && found.requests === entry.requests;
    },
    { because: `the bucket has ${entry.requests} in ${entry.month}` },
  );

describe("the quota of an organization", () => {
  it("is published after the first count, and again after each increase", async () => {
    await setClock("2031-05-15T10:10:00.000Z");
    const tenant = makeTenant();
    const edge = makeEdge();
    const hour = "2031-05-15T10:00:00.000Z";
    await metering.send(edge.message([tenant.used({ hour, requests: { flags: 3 } })]));
    await published(tenant, { month: "2031-05", requests: 3 });
    await metering.send(edge.message([tenant.used({ hour, requests: { flags: 4, stream: 1 } })]));
    await published(tenant, { month: "2031-05", requests: 8 });
    expect(await metering.quotaOf(tenant.organizationId)).toEqual({
      organization_id: tenant.organizationId,
      month: "2031-05",
      requests: 8,
    });
  });

  it("is published in intervals, not for every message", async () => {
    const revision = async () => (await metering.manager.streams.info("KV_QUOTA")).state.last_seq;
    const tenant = makeTenant();
    const before = await revision();
    const edges = Array.from({ length: 500 }, () => makeEdge());
    await metering.send(...edges.map((edge) => edge.message([tenant.used()])));
    await eventually(async () => (await metering.quotaOf(tenant.organizationId))?.requests === 500);
    expect((await revision()) - before).toBeLessThan(250);
  });

  it("begins at zero with a new month, and late usage of the old month does not overwrite it", async () => {
    const tenant = makeTenant();
    const edge = makeEdge();
    const june = "2031-06-30T23:00:00.000Z";
    const july = "2031-07-01T00:00:00.000Z";
    const entries = metering.connection.subscribe(
      quotaBucket.subjectPrefix + tenant.organizationId,
    );
    await setClock("2031-06-30T23:59:00.000Z");
    await metering.send(edge.message([tenant.used({ hour: june, requests: { flags: 9 } })]));
    await published(tenant, { month: "2031-06", requests: 9 });
    await setClock("2031-07-01T00:00:05.000Z");
    await metering.send(edge.message([tenant.used({ hour: july, requests: { flags: 2 } })]));
    await published(tenant, { month: "2031-07", requests: 2 });
    await metering.send(edge.message([tenant.used({ hour: june, requests: { flags: 5 } })]));
    await metering.allProcessed();
    await metering.send(edge.message([tenant.used({ hour: july, requests: { flags: 1 } })]));
    await published(tenant, { month: "2031-07", requests: 3 });
    await entries.drain();
    const months: string[] = [];
    for await (const entry of entries) months.push(entry.json<QuotaEntry>().month);
    expect(months.lastIndexOf("2031-06")).toBeLessThan(months.indexOf("2031-07"));
  });
});

describe("about the beginning of a month, when clocks differ", () => {
  const july = { hour: "2032-07-01T00:00:00.000Z", month: "2032-07" };
  const june = { hour: "2032-06-30T23:00:00.000Z", month: "2032-06" };

  it("publishes the previous month while the new one has no use", async () => {
    await setClock("2032-07-01T00:00:05.000Z");
    const tenant = makeTenant();
    await metering.send(makeEdge().message([tenant.used({ hour: june.hour })]));
    await published(tenant, { month: june.month, requests: 1 });
  });

  it("publishes the next month, and then overwrites it by the current one", async () => {
    await setClock("2032-06-30T23:50:00.000Z");
    const tenant = makeTenant();
    const edge = makeEdge();
    await metering.send(edge.message([tenant.used({ hour: july.hour, requests: { flags: 7 } })]));
    await published(tenant, { month: july.month, requests: 7 });
    await metering.send(edge.message([tenant.used({ hour: june.hour, requests: { flags: 3 } })]));
    await published(tenant, { month: june.month, requests: 3 });
  });

  it("publishes the current month again after the database's clock was months ahead", async () => {
    const tenant = makeTenant();
    const edge = makeEdge();
    const usedAt = (hour: string) => edge.message([tenant.used({ hour })]);
    await setClock("2032-11-15T10:10:00.000Z");
    await metering.send(usedAt("2032-11-15T10:00:00.000Z"));
    await published(tenant, { month: "2032-11", requests: 1 });
    await setClock("2032-08-15T10:10:00.000Z");
    await metering.send(usedAt("2032-08-15T10:00:00.000Z"));
    await published(tenant, { month: "2032-08", requests: 1 });
  });
});

describe("a wrong entry", () => {
  it("is repaired after the bucket was read again if its process died before the publication", async () => {
    await setClock("2031-09-15T10:10:00.000Z");
    const tenant = makeTenant();
    await metering.admin`
      insert into organization_months values ('2031-09-01', ${tenant.organizationId}, 12)`;
    await metering.manager.streams.delete(quotaBucket.streamName);
    await published(tenant, { month: "2031-09", requests: 12 });
  });

  it("is repaired by the next comparison if a slower replica has overwritten a higher total", async () => {
    await setClock("2031-11-15T10:10:00.000Z");
    const replica = await metering.startReplica({ compareIntervalMs: 100 });
    const tenant = makeTenant();
    const hour = "2031-11-15T10:00:00.000Z";
    await metering.send(makeEdge().message([tenant.used({ hour, requests: { flags: 12 } })]));
    await published(tenant, { month: "2031-11", requests: 12 });
    await metering.client.publish(
      quotaBucket.subjectPrefix + tenant.organizationId,
      JSON.stringify({ organization_id: tenant.organizationId, month: "2031-11", requests: 11 }),
    );
    await published(tenant, { month: "2031-11", requests: 12 });
    await replica.stop();
  });

  it("is adopted by a database that has lost its commits, and counting continues from there", async () => {
    await setClock("2031-12-15T10:10:00.000Z");
    const [lower, missing] = [makeTenant(), makeTenant()];
    await metering.admin`
      insert into organization_months values ('2031-12-01', ${lower.organizationId}, 100)`;
    for (const { organizationId } of [lower, missing])
      await metering.client.publish(
        quotaBucket.subjectPrefix + organizationId,
        JSON.stringify({ organization_id: organizationId, month: "2031-12", requests: 150 }),
      );
    // A process compares everything when it starts.
    replicas.push(await metering.startReplica());
    // Another process may adopt one of them before both are published.
    const areAdopted = async () => {
      const months = await metering.admin`
        select from organization_months where month = '2031-12-01' and requests = 150`;
      return months.length === 2;
    };
    await eventually(areAdopted, { because: "the database has the numbers that edges enforce" });
    const hour = "2031-12-15T10:00:00.000Z";
    await metering.send(makeEdge().message([lower.used({ hour }), missing.used({ hour })]));
    for (const tenant of [lower, missing])
      await published(tenant, { month: "2031-12", requests: 151 });
  });

  it("is overwritten if it cannot be parsed", async () => {
    await setClock("2031-10-15T10:10:00.000Z");
    const tenant = makeTenant();
    await metering.client.publish(quotaBucket.subjectPrefix + tenant.organizationId, "nonsense");
    const hour = "2031-10-15T10:00:00.000Z";
    await metering.send(makeEdge().message([tenant.used({ hour })]));
    await eventually(async () => (await metering.quotaOf(tenant.organizationId))?.requests === 1);
  });
});

describe("with thousands of organizations", () => {
  it("publishes the quotas of all of them, including at the end", async () => {
    const tenants = Array.from({ length: 5_000 }, () => makeTenant());
    const usage = tenants.map((tenant) => tenant.used());
    await metering.send(
      ...[0, 1, 2, 3, 4].map((part) =>
        makeEdge().message(usage.slice(1_000 * part, 1_000 * (part + 1))),
      ),
    );
    await metering.allProcessed();
    await Promise.all(replicas.map((one) => one.stop()));
    const { state } = await metering.manager.streams.info(quotaBucket.streamName, {
      subjects_filter: ">",
    });
    const missing = tenants.filter(
      ({ organizationId }) => !state.subjects?.[quotaBucket.subjectPrefix + organizationId],
    );
    expect(missing).toHaveLength(0);
  });
});

describe("an entry compared with a known one", () => {
  const entry = (month: string, requests: number) => ({
    organization_id: "01900000-0000-7000-8000-000000000001",
    month,
    requests,
  });

  it.each([
    { given: entry("2031-05", 5), known: undefined, isExpected: true },
    { given: entry("2031-06", 5), known: entry("2031-05", 4), isExpected: true },
    { given: entry("2031-06", 5), known: entry("2031-07", 4), isExpected: false },
    { given: entry("2031-05", 5), known: entry("2031-05", 4), isExpected: true },
    { given: entry("2031-05", 5), known: entry("2031-05", 5), isExpected: false },
    { given: entry("2031-05", 5), known: entry("2031-05", 6), isExpected: false },
    { given: entry("2031-05", 5), known: entry("2031-04", 6), isExpected: true },
    { given: entry("2031-05", 5), known: entry("2031-06", 9), isExpected: true },
    { given: entry("2031-04", 5), known: entry("2031-05", 1), isExpected: false },
  ])(
    "in 2031-05, $given.month: $given.requests replaces $known.month: $known.requests: $isExpected",
    ({ given, known, isExpected }) => {
      expect(isUpdate(given, known, "2031-05")).toBe(isExpected);
    },
  );
});
