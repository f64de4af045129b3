import {
  type AudienceEntry,
  type EdgeStreams,
  edgeStreams,
  type FlagEntry,
  type OrganizationEntry,
  type TargetingRule,
} from "@halyard/contracts";
import { eventually, flagInSnapshot } from "@halyard/testing";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { rollUpHours } from "../src/retention/old-rows.ts";
import { makeEdge, makeTenant, openMetering, plansEntry, type Tenant } from "./usage-fixture.ts";

/** The usage reports of the API. */

const metering = await openMetering();
afterAll(() => metering.close());
const replica = await metering.startReplica();
const tenant = await newTenant();
afterEach(() => metering.stepClock(0));

const setClock = (instant: string) => metering.stepClock(Date.parse(instant) - Date.now());

async function newTenant(...given: Parameters<typeof makeTenant>): Promise<Tenant> {
  const made = makeTenant(...given);
  await metering.bucket.put(...made.entries);
  await eventually(
    () =>
      replica.keys.verify(made.environmentOnlyKey, Date.now()) !== undefined &&
      replica.keys.verify(made.serverKey, Date.now()) !== undefined &&
      replica.keys.verify(made.clientKey, Date.now()) !== undefined &&
      replica.directory.organization(made.organizationId) !== undefined,
  );
  return made;
}

async function newFlag({ of = tenant, createdAt = "2020-01-01T00:00:00.000Z" } = {}) {
  const flag = of.flag(uuidv7({ msecs: Date.parse(createdAt) }));
  await metering.bucket.put(...flag.entries);
  const { projectId } = of;
  await eventually(
    () => replica.directory.environmentsOf({ projectId, flagId: flag.flagId }).length === 2,
  );
  return flag.flagId;
}

type Flag = ReturnType<typeof flagInSnapshot>;

const get = (path: string, key = tenant.serverKey) => replica.call(path, { key });
const flagUsage = (flagId: string, query = "") => get(`/api/v1/flags/${flagId}/usage${query}`);

describe("the usage of an organization", () => {
  it("is reported with its plan, for the current month in UTC", async () => {
    await setClock("2031-02-28T23:59:00.000Z");
    const used = tenant.used({
      hour: "2031-02-28T23:00:00.000Z",
      requests: { flags: 6, evaluate: 1 },
    });
    await metering.send(makeEdge().message([used]));
    await metering.allProcessed();
    expect(await get("/api/v1/usage")).toMatchObject({
      status: 200,
      body: {
        plan: "starter",
        period: { start: "2031-02-01T00:00:00.000Z", end: "2031-03-01T00:00:00.000Z" },
        requests: { used: 7, limit: 1_000_000 },
        sse_connections: { used: 0, limit: 25 },
        projects: { used: 2, limit: 5 },
        configuration_bytes: { used: 0, limit: 32 * 1024 * 1024 },
      },
    });
    await setClock("2031-03-01T00:00:01.000Z");
    expect((await get("/api/v1/usage")).body).toMatchObject({
      period: { start: "2031-03-01T00:00:00.000Z", end: "2031-04-01T00:00:00.000Z" },
      requests: { used: 0 },
    });
  });

  it("has null for limits that do not apply, changes with the plan, and keeps the limits while a plan is unknown", async () => {
    const enterprise = { requests_per_month: null, sse_connections: null, projects: null };
    await metering.bucket.put(plansEntry({ enterprise }, 2));
    const unlimited = await newTenant({ plan: "enterprise" });
    const { address, value } = unlimited.organization;
    const read = async () => (await get("/api/v1/usage", unlimited.serverKey)).body;
    const become = async (version: number, plan: string) => {
      const changed = { ...value, plan, version, project_count: 3 } as OrganizationEntry;
      await metering.bucket.put({ address, value: changed });
      await eventually(async () => (await read()).plan === plan);
    };
    expect(await read()).toMatchObject({
      plan: "enterprise",
      requests: { used: 0, limit: null },
      sse_connections: { used: 0, limit: null },
      projects: { used: 2, limit: null },
      configuration_bytes: { used: 0, limit: null },
    });
    await become(2, "free");
    expect((await read()).projects).toEqual({ used: 3, limit: 3 });
    await become(3, "not known yet");
    expect((await read()).projects).toEqual({ used: 3, limit: 3 });
  });

  it("ignores plans without a valid signature", async () => {
    const none = { requests_per_month: 0, sse_connections: 0, projects: 0 };
    const { address, value } = plansEntry({ starter: none }, 9);
    await metering.bucket.putPayload({ address }, JSON.stringify(value));
    const genuine = { ...none, projects: 8 };
    await metering.bucket.put(plansEntry({ starter: genuine }, 3));
    await eventually(async () => (await get("/api/v1/usage")).body.projects.limit === 8);
  });

  it("has the size of the rules of its flags, without deleted flags and environments", async () => {
    const own = await newTenant();
    const used = async () =>
      (await get("/api/v1/usage", own.serverKey)).body.configuration_bytes.used;
    const value = [1e308, -2.5e-7, 0.1];
    const targeting_rules: TargetingRule[] = [
      { name: "größer", conditions: [{ attribute: "a", operator: "in", value }] },
    ];
    // PostgreSQL writes numbers without exponents: management measures the same (`projects.test.ts`).
    const bytes = 404;
    const flag = (environment_id: string) =>
      flagInSnapshot(own, { environment_id, targeting_rules });
    const { environmentId, otherEnvironmentId, organizationId } = own;
    const [emptied, deleted, kept] = [1, 2, 3].map(() => flag(environmentId)) as [Flag, Flag, Flag];
    await metering.bucket.put(emptied, deleted, kept, flag(otherEnvironmentId));
    await eventually(async () => (await used()) === 4 * bytes);
    const deletion = { deleted: true, version: 2, committed_at: kept.value.committed_at } as const;
    await metering.bucket.put(
      { ...emptied, value: { ...emptied.value, version: 2, targeting_rules: [] } },
      { address: deleted.address, value: deletion },
    );
    await eventually(async () => (await used()) === 2 * bytes);
    const address = {
      kind: "environment",
      organizationId,
      environmentId: otherEnvironmentId,
    } as const;
    await metering.bucket.put({ address, value: deletion });
    await eventually(async () => (await used()) === bytes);
  });

  it("has the size of what typed flags serve and of their values, in each environment", async () => {
    const own = await newTenant();
    const variations = [
      { key: "small", name: "Small", json: '{"größe":1e-7}' },
      { key: "large", json: '{"größe":"groß"}' },
    ];
    const split: Extract<FlagEntry["serve"], { split: unknown }>["split"] = [
      { variation: "small", weight: 33.3, ranges: [[0, 3330]] },
      { variation: "large", weight: 66.7, ranges: [[3330, 10_000]] },
    ];
    const typed = { flag_id: uuidv7(), value_type: "object", variations } as const;
    await metering.bucket.put(
      flagInSnapshot(own, {
        ...{ ...typed, off_variation: "large", serve: { split } },
        targeting_rules: [{ id: "a", conditions: [], serve: { variation: "large" } }],
      }),
      flagInSnapshot(own, {
        ...{ ...typed, off_variation: "large", serve: { variation: "small" } },
        environment_id: own.otherEnvironmentId,
      }),
    );
    // Management measures the same flag (`projects.test.ts`).
    await eventually(
      async () =>
        (await get("/api/v1/usage", own.serverKey)).body.configuration_bytes.used === 218 + 56,
    );
  });

  it("has the size of audiences, without deleted ones", async () => {
    const own = await newTenant();
    const used = async () =>
      (await get("/api/v1/usage", own.serverKey)).body.configuration_bytes.used;
    const { organizationId, projectId } = own;
    const audience = (value: object, version: number, audienceId = uuidv7()) => ({
      address: { kind: "audience", organizationId, projectId, audienceId } as const,
      value: {
        ...{ kind: "audience", organization_id: organizationId, project_id: projectId },
        ...{ audience_id: audienceId, key: audienceId, version, match: [] },
        ...{ committed_at: new Date().toISOString(), ...value },
      } as AudienceEntry,
    });
    const match = [[{ attribute: "plan", operator: "equals", value: "beta" }]];
    const list = { attribute: "id", count: 3, key: "0".repeat(32), chunks: ["0".repeat(64)] };
    const [withMatch, withList] = [audience({ match }, 1), audience({ list }, 1)];
    await metering.bucket.put(withMatch, withList);
    // Management measures the same (`audience-limits.test.ts`).
    const bytes = 57;
    await eventually(async () => (await used()) === bytes + 3 * 8);
    const { address, value } = withMatch;
    const { committed_at } = value;
    await metering.bucket.put({ address, value: { deleted: true, version: 2, committed_at } });
    await eventually(async () => (await used()) === 3 * 8);
  });

  it("has the open streams that the edges report", async () => {
    const [first, second] = [uuidv7(), uuidv7()];
    const report = (value: EdgeStreams | object) =>
      metering.connection.publish(edgeStreams.subject, JSON.stringify(value));
    const of = (count: number) => ({ [tenant.organizationId]: count });
    const streams = async () => (await get("/api/v1/usage")).body.sse_connections.used;
    report({ state: "all", edge: first, part: 1, parts: 1, streams: of(3) });
    report({ state: "changed", edge: second, streams: of(4) });
    await eventually(async () => (await streams()) === 7);
    report({ state: "all", edge: first, streams: of(100) });
    report({ state: "stopped", edge: second });
    await eventually(async () => (await streams()) === 3);
    report({ state: "all", edge: first, part: 1, parts: 1, streams: {} });
    await eventually(async () => (await streams()) === 0);
  });
});

describe("the requests of an organization by day", () => {
  const days = async (query: string, key: string) => {
    const { status, body } = await get(`/api/v1/usage/days${query}`, key);
    return { status, ...body };
  };
  const requestsOf = ({ days }: { days: { requests: number }[] }) =>
    days.map(({ requests }) => requests);

  it("are those of this month by default, with all days, and add up to its requests", async () => {
    await setClock("2031-10-05T10:30:00.000Z");
    const own = await newTenant();
    const hour = (at: string, requests: number, environment_id = own.environmentId) =>
      own.used({ hour: at, environment_id, requests: { flags: requests, evaluate: 1 } });
    await metering.send(
      makeEdge().message([
        hour("2031-09-30T23:00:00.000Z", 2),
        hour("2031-10-01T00:00:00.000Z", 3),
        hour("2031-10-03T23:00:00.000Z", 4),
        hour("2031-10-03T23:00:00.000Z", 5, own.otherEnvironmentId),
        hour("2031-10-05T10:00:00.000Z", 6),
      ]),
    );
    await metering.allProcessed();
    const month = await days("", own.serverKey);
    expect(month).toEqual({
      status: 200,
      days: [
        { date: "2031-10-01", requests: 4 },
        { date: "2031-10-02", requests: 0 },
        { date: "2031-10-03", requests: 11 },
        { date: "2031-10-04", requests: 0 },
        { date: "2031-10-05", requests: 7 },
      ],
      known_since: "2031-09-30",
    });
    const { body } = await get("/api/v1/usage", own.serverKey);
    expect(requestsOf(month).reduce((sum, each) => sum + each)).toBe(body.requests.used);
    expect(requestsOf(await days("?from=2031-09-30&to=2031-10-01", own.serverKey))).toEqual([3, 4]);
    expect(requestsOf(await days("?to=2031-09-30", own.serverKey))).toHaveLength(30);
  });

  it("are the same after old hours are rolled up", async () => {
    const own = await newTenant();
    const { organizationId, projectId, environmentId } = own;
    await metering.admin`
      insert into request_hours
      select ${organizationId}, ${projectId}, ${environmentId}, 'flags',
        '2020-01-01T00:00:00Z'::timestamptz + number * interval '1 hour', 1
      from generate_series(0, 49) as number`;
    const query = "?from=2019-12-31&to=2020-01-03";
    const before = await days(query, own.serverKey);
    expect(requestsOf(before)).toEqual([0, 24, 24, 2]);
    await rollUpHours(replica.sql, 30);
    expect(await days(query, own.serverKey)).toEqual(before);
    expect(before.known_since).toBe("2020-01-01");
  });

  it("are at most the largest number that JSON readers represent exactly", async () => {
    const own = await newTenant();
    const { organizationId, projectId, environmentId } = own;
    const most = Number.MAX_SAFE_INTEGER;
    await metering.admin`
      insert into request_hours
      select ${organizationId}, ${projectId}, ${environmentId}, 'flags',
        '2020-01-01T00:00:00Z'::timestamptz + number * interval '1 hour', ${most}
      from generate_series(0, 1) as number`;
    const query = "?from=2020-01-01&to=2020-01-01";
    const before = await days(query, own.serverKey);
    expect([before.status, requestsOf(before)]).toEqual([200, [most]]);
    await rollUpHours(replica.sql, 30);
    expect(await days(query, own.serverKey)).toEqual(before);
  });

  it("are 0 for an organization without requests", async () => {
    const own = await newTenant();
    const { status, ...body } = await days("?from=2031-01-30&to=2031-01-31", own.serverKey);
    expect(body).toEqual({
      days: [
        { date: "2031-01-30", requests: 0 },
        { date: "2031-01-31", requests: 0 },
      ],
      known_since: null,
    });
  });

  it("are those of at most 92 days", async () => {
    const { days: all } = await days("?from=2031-07-01&to=2031-09-30", tenant.serverKey);
    expect(all).toHaveLength(92);
  });

  it.each([
    "from=2031-06-30&to=2031-09-30",
    "from=2031-09-02&to=2031-09-01",
    "from=2031-02-29",
    "from=1969-12-31&to=1970-01-01",
    "to=2031-9-1",
    "to=2031-09-01T00:00:00Z",
    "to=",
  ])("are rejected for %s", async (query) => {
    const { status, error } = await days(`?${query}`, tenant.serverKey);
    expect([status, error.code]).toEqual([400, "VALIDATION_001"]);
  });
});

describe("the usage of a flag", () => {
  const evaluated = (flagId: string, evaluations: number, at: string) => ({
    flags: [{ flag_id: flagId, evaluations, evaluated_at: at }],
  });

  it("has hours and environments, including bulk responses", async () => {
    await setClock("2031-05-15T10:30:00.000Z");
    const own = await newTenant();
    const flagId = await newFlag({ of: own });
    const edge = makeEdge();
    const staging = { environment_id: own.otherEnvironmentId };
    await metering.send(
      edge.message([
        own.used({
          hour: "2031-05-15T08:00:00.000Z",
          ...evaluated(flagId, 4, "2031-05-15T08:59:00.000Z"),
          bulk_answers: 10,
          bulk_answered_at: "2031-05-15T08:30:00.000Z",
        }),
        own.used({
          hour: "2031-05-15T10:00:00.000Z",
          bulk_answers: 3,
          bulk_answered_at: "2031-05-15T10:20:00.000Z",
        }),
        own.used({
          ...staging,
          hour: "2031-05-15T09:00:00.000Z",
          ...evaluated(flagId, 1, "2031-05-15T09:10:00.000Z"),
        }),
      ]),
    );
    await metering.allProcessed();
    const { status, body } = await get(`/api/v1/flags/${flagId}/usage`, own.serverKey);
    expect(status).toBe(200);
    expect(body).toEqual({
      flag_id: flagId,
      hours: 24,
      environments: [
        {
          environment_id: own.environmentId,
          name: "production",
          last_evaluated_at: "2031-05-15T10:20:00.000Z",
          evaluations: 17,
          by_hour: [
            { hour: "2031-05-15T08:00:00.000Z", evaluations: 14 },
            { hour: "2031-05-15T10:00:00.000Z", evaluations: 3 },
          ],
        },
        {
          environment_id: own.otherEnvironmentId,
          name: "staging",
          last_evaluated_at: "2031-05-15T09:10:00.000Z",
          evaluations: 1,
          by_hour: [{ hour: "2031-05-15T09:00:00.000Z", evaluations: 1 }],
        },
      ],
    });
  });

  it("covers the requested number of hours, including the current one", async () => {
    await setClock("2031-06-15T10:30:00.000Z");
    const flagId = await newFlag();
    const edge = makeEdge();
    for (const hour of ["08", "09", "10"])
      await metering.send(
        edge.message([
          tenant.used({
            hour: `2031-06-15T${hour}:00:00.000Z`,
            ...evaluated(flagId, 1, `2031-06-15T${hour}:10:00.000Z`),
          }),
        ]),
      );
    await metering.allProcessed();
    const evaluations = async (hours: number) => {
      const { body } = await flagUsage(flagId, `?hours=${hours}`);
      return [body.hours, body.environments[0].evaluations];
    };
    expect(await evaluations(1)).toEqual([1, 1]);
    expect(await evaluations(2)).toEqual([2, 2]);
    expect(await evaluations(720)).toEqual([720, 3]);
  });

  it("has no bulk responses from before its creation", async () => {
    await setClock("2031-07-15T10:30:00.000Z");
    const own = await newTenant();
    const flagId = await newFlag({ of: own, createdAt: "2031-07-15T10:10:00.000Z" });
    const bulk = { bulk_answers: 50, bulk_answered_at: "2031-07-15T10:05:00.000Z" };
    await metering.send(
      makeEdge().message([own.used({ hour: "2031-07-15T10:00:00.000Z", ...bulk })]),
    );
    await metering.allProcessed();
    const { body } = await get(`/api/v1/flags/${flagId}/usage`, own.serverKey);
    expect(body.environments[0]).toMatchObject({ evaluations: 0, last_evaluated_at: null });
  });

  it("is empty for a flag without evaluations", async () => {
    const own = await newTenant();
    const { body } = await get(`/api/v1/flags/${await newFlag({ of: own })}/usage`, own.serverKey);
    const nothing = { last_evaluated_at: null, evaluations: 0, by_hour: [] };
    expect(body.environments).toMatchObject([nothing, nothing]);
  });

  it("is that of one environment for a key of that environment", async () => {
    const flagId = await newFlag();
    const { body } = await get(`/api/v1/flags/${flagId}/usage`, tenant.environmentOnlyKey);
    expect(body.environments).toMatchObject([{ environment_id: tenant.environmentId }]);
  });

  it("accepts an id in upper case, like every path", async () => {
    const flagId = await newFlag();
    const { status, body } = await flagUsage(flagId.toUpperCase());
    expect([status, body.flag_id]).toEqual([200, flagId]);
  });

  it.each(["0", "721", "-1", "1.5", "many", ""])("is rejected for %j hours", async (hours) => {
    const { status, body } = await flagUsage(await newFlag(), `?hours=${hours}`);
    expect([status, body.error.code]).toEqual([400, "VALIDATION_001"]);
  });
});

describe("a flag that the client cannot see", () => {
  it.each([
    { name: "one that never existed", path: async () => uuidv7() },
    { name: "a text that is not an id", path: async () => "flag-1" },
    { name: "another project's", path: async () => newFlag({ of: await newTenant() }) },
    {
      name: "a deleted one",
      async path() {
        const flagId = await newFlag();
        const { organizationId } = tenant;
        for (const environmentId of [tenant.environmentId, tenant.otherEnvironmentId])
          await metering.bucket.put({
            address: { kind: "flag", organizationId, environmentId, flagId },
            value: { deleted: true, version: 2, committed_at: new Date().toISOString() },
          });
        await eventually(
          () =>
            replica.directory.environmentsOf({ projectId: tenant.projectId, flagId }).length === 0,
        );
        return flagId;
      },
    },
  ])("gets 404: $name", async ({ path }) => {
    const { status, body } = await flagUsage(await path());
    expect([status, body.error.code]).toEqual([404, "NOT_FOUND_001"]);
  });
});

describe("authentication", () => {
  const paths = ["/api/v1/usage", "/api/v1/usage/days", `/api/v1/flags/${uuidv7()}/usage`];

  it.each(paths)("%s: requires a server key", async (path) => {
    const codeFor = async (key?: string) => {
      const { status, body } = await replica.call(path, key === undefined ? {} : { key });
      return [status, body.error.code];
    };
    expect(await codeFor()).toEqual([401, "AUTH_001"]);
    expect(await codeFor(makeTenant().serverKey)).toEqual([401, "AUTH_001"]);
    expect(await codeFor(tenant.clientKey)).toEqual([403, "AUTH_002"]);
  });
});
