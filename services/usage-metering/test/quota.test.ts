import { quotaBucket } from "@halyard/contracts";
import { eventually } from "@halyard/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { isUpdate } from "../src/quota/quota-publisher.ts";
import {
  type Metering,
  makeEdge,
  makeTenant,
  openMetering,
  type Replica,
  type Tenant,
} from "./usage-fixture.ts";

/** What edges are told of the present month. */
let metering: Metering;
let replicas: Replica[];

beforeAll(async () => {
  metering = await openMetering();
  replicas = await Promise.all([1, 2].map(() => metering.startReplica()));
});
afterEach(() => metering.stepClock(0));
afterAll(() => metering?.close());

const setClock = (instant: string) => metering.stepClock(Date.parse(instant) - Date.now());

const published = (tenant: Tenant, entry: { month: string; requests: number }) =>
  eventually(
    async () => {
      const found = await metering.quotaOf(tenant.organizationId);
      return found?.month === entry.month && found.requests === entry.requests;
    },
    { because: `the bucket says ${entry.requests} in ${entry.month}` },
  );

describe("what an organization has used of the month", () => {
  it("is published after it was counted, and again when there is more", async () => {
    await setClock("2031-05-15T10:10:00.000Z");
    const tenant = makeTenant();
    const edge = makeEdge();
    const hour = "2031-05-15T10:00:00.000Z";
    await metering.tell(edge.message([tenant.used({ hour, requests: { flags: 3 } })]));
    await published(tenant, { month: "2031-05", requests: 3 });
    await metering.tell(edge.message([tenant.used({ hour, requests: { flags: 4, stream: 1 } })]));
    await published(tenant, { month: "2031-05", requests: 8 });
    expect(await metering.quotaOf(tenant.organizationId)).toEqual({
      organization_id: tenant.organizationId,
      month: "2031-05",
      requests: 8,
    });
  });

  it("is published by several rounds, not by every message", async () => {
    const revision = async () => (await metering.manager.streams.info("KV_QUOTA")).state.last_seq;
    const tenant = makeTenant();
    const before = await revision();
    const edges = Array.from({ length: 500 }, () => makeEdge());
    await metering.tell(...edges.map((edge) => edge.message([tenant.used()])));
    await eventually(async () => (await metering.quotaOf(tenant.organizationId))?.requests === 500);
    expect((await revision()) - before).toBeLessThan(250);
  });

  it("begins anew with the month, and what is late is no longer told over it", async () => {
    const tenant = makeTenant();
    const edge = makeEdge();
    await setClock("2031-06-30T23:59:00.000Z");
    await metering.tell(
      edge.message([tenant.used({ hour: "2031-06-30T23:00:00.000Z", requests: { flags: 9 } })]),
    );
    await published(tenant, { month: "2031-06", requests: 9 });
    await setClock("2031-07-01T00:00:05.000Z");
    await metering.tell(
      edge.message([tenant.used({ hour: "2031-06-30T23:00:00.000Z", requests: { flags: 5 } })]),
      edge.message([tenant.used({ hour: "2031-07-01T00:00:00.000Z", requests: { flags: 2 } })]),
    );
    await published(tenant, { month: "2031-07", requests: 2 });
  });
});

describe("about the turn of the month, when clocks differ", () => {
  const july = { hour: "2032-07-01T00:00:00.000Z", month: "2032-07" };
  const june = { hour: "2032-06-30T23:00:00.000Z", month: "2032-06" };

  it("tells the month before while nothing of the new one was used", async () => {
    await setClock("2032-07-01T00:00:05.000Z");
    const tenant = makeTenant();
    await metering.tell(makeEdge().message([tenant.used({ hour: june.hour })]));
    await published(tenant, { month: june.month, requests: 1 });
  });

  it("tells the month that lies ahead, and then the present one over it", async () => {
    await setClock("2032-06-30T23:50:00.000Z");
    const tenant = makeTenant();
    const edge = makeEdge();
    await metering.tell(edge.message([tenant.used({ hour: july.hour, requests: { flags: 7 } })]));
    await published(tenant, { month: july.month, requests: 7 });
    await metering.tell(edge.message([tenant.used({ hour: june.hour, requests: { flags: 3 } })]));
    await published(tenant, { month: june.month, requests: 3 });
  });

  it("tells the present month again after the database's clock was months ahead", async () => {
    const tenant = makeTenant();
    const edge = makeEdge();
    const usedAt = (hour: string) => edge.message([tenant.used({ hour })]);
    await setClock("2032-11-15T10:10:00.000Z");
    await metering.tell(usedAt("2032-11-15T10:00:00.000Z"));
    await published(tenant, { month: "2032-11", requests: 1 });
    await setClock("2032-08-15T10:10:00.000Z");
    await metering.tell(usedAt("2032-08-15T10:00:00.000Z"));
    await published(tenant, { month: "2032-08", requests: 1 });
  });
});

describe("an entry that is not as it should be", () => {
  /** Everything is compared when the bucket is read anew, and every half minute. */
  async function recreateBucket() {
    await metering.manager.streams.delete(quotaBucket.streamName);
    await eventually(() => metering.manager.streams.info(quotaBucket.streamName).then(Boolean));
  }

  it("is repaired: one that was never published, and one that is behind", async () => {
    await setClock("2031-09-15T10:10:00.000Z");
    const [lost, behind] = [makeTenant(), makeTenant()];
    // As a process leaves it that dies between its commit and the next round.
    for (const { organizationId } of [lost, behind])
      await metering.admin`
        insert into organization_months values ('2031-09-01', ${organizationId}, 12)`;
    await recreateBucket();
    await metering.client.publish(
      quotaBucket.subjectPrefix + behind.organizationId,
      JSON.stringify({ organization_id: behind.organizationId, month: "2031-09", requests: 11 }),
    );
    await published(lost, { month: "2031-09", requests: 12 });
    await recreateBucket();
    await published(behind, { month: "2031-09", requests: 12 });
  });

  it("is adopted by a database that has lost its commits, and counting continues from it", async () => {
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
    await eventually(areAdopted, { because: "the database says what edges enforce" });
    const hour = "2031-12-15T10:00:00.000Z";
    await metering.tell(makeEdge().message([lower.used({ hour }), missing.used({ hour })]));
    for (const tenant of [lower, missing])
      await published(tenant, { month: "2031-12", requests: 151 });
  });

  it("is written over when nobody can read it", async () => {
    await setClock("2031-10-15T10:10:00.000Z");
    const tenant = makeTenant();
    await metering.client.publish(quotaBucket.subjectPrefix + tenant.organizationId, "nonsense");
    const hour = "2031-10-15T10:00:00.000Z";
    await metering.tell(makeEdge().message([tenant.used({ hour })]));
    await eventually(async () => (await metering.quotaOf(tenant.organizationId))?.requests === 1);
  });
});

describe("given thousands of organizations", () => {
  it("goes through all of them, also at the end", async () => {
    const tenants = Array.from({ length: 5_000 }, () => makeTenant());
    const usage = tenants.map((tenant) => tenant.used());
    await metering.tell(
      ...[0, 1, 2, 3, 4].map((part) =>
        makeEdge().message(usage.slice(1_000 * part, 1_000 * (part + 1))),
      ),
    );
    await metering.allTaken();
    await Promise.all(replicas.map((one) => one.stop()));
    const { state } = await metering.manager.streams.info(quotaBucket.streamName, {
      subjects_filter: ">",
    });
    const untold = tenants.filter(
      ({ organizationId }) => !state.subjects?.[quotaBucket.subjectPrefix + organizationId],
    );
    expect(untold).toHaveLength(0);
  });
});

describe("an entry over one that is known", () => {
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
    "in 2031-05, $given.month: $given.requests over $known.month: $known.requests is news: $isExpected",
    ({ given, known, isExpected }) => {
      expect(isUpdate(given, known, "2031-05")).toBe(isExpected);
    },
  );
});
