import { type PlanLimits, type PlansEntry, snapshotBucket } from "@halyard/contracts";
import { eventually, startServiceProcess } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { pino } from "pino";
import { v7 as uuidv7 } from "uuid";
import { createLease, LeadershipLostError } from "../../src/publishing/lease.ts";
import { lockPlans, preparePlans, writePlans } from "../../src/tenancy/plans.ts";
import { operatorToken as key, type Management, openManagement } from "../management-fixture.ts";
import { entriesOf, tenancyOf } from "../tenancy-fixture.ts";

/** Tests restarts of management over the same database with changed plans. */
const limits = (requests: number, projects: number): PlanLimits => ({
  requests_per_month: requests,
  sse_connections: 10,
  projects,
  configuration_bytes: null,
});

const before = { small: limits(100, 3), gone: limits(100, 2), unused: limits(7, 7) };
const after = { small: limits(200, 1), added: limits(300, 3) };

let management: Management;
const warnings: string[] = [];
const small = { id: "" };
const gone = { id: "" };

const first = await openManagement({ plans: before });
afterAll(async () => {
  await management?.stop();
  await first.close();
});
const given = tenancyOf(first);
Object.assign(small, await given.organization({ plan: "small" }));
await given.project(small.id);
await allIsSent(first);

const read = async (id: string) =>
  (await management.call(`/api/v1/organizations/${id}`, { key })).body;

const patch = (id: string, body: unknown) =>
  management.call(`/api/v1/organizations/${id}`, { method: "PATCH", key, body });

const addProject = (id: string) =>
  management.call(`/api/v1/organizations/${id}/projects`, {
    method: "POST",
    key,
    body: { name: uuidv7() },
  });

const published = (): Promise<PlansEntry[]> => entriesOf(management ?? first, "plans");
const newest = async () => (await published()).at(-1);

async function allIsSent({ sql }: Management): Promise<void> {
  await eventually(async () => {
    const rows = await sql`select from outbox where sent_at is null`;
    return rows.length === 0;
  });
}

const configured = (plans: Record<string, PlanLimits>) => ({
  plans,
  now: () => new Date(),
  newId: uuidv7,
  logger: pino({ level: "warn" }, { write: (line) => void warnings.push(line) }),
});

describe("given a new database", () => {
  it("has the configured plans in the snapshot, with a signature, before it is complete", async () => {
    expect(await published()).toMatchObject([{ limits: before, version: 1 }]);
    const connection = await connect({ servers: first.natsUrl });
    const manager = await jetstreamManager(connection);
    const entry = (name: string) =>
      manager.direct.getMessage(snapshotBucket.streamName, {
        last_by_subj: snapshotBucket.subjectPrefix + name,
      });
    const [plans, complete] = await Promise.all([entry("plans"), entry("complete")]);
    expect(plans?.json()).toMatchObject({ limits: before, signature: expect.any(String) });
    expect(plans?.seq).toBeLessThan(complete?.seq ?? 0);
    await connection.close();
  });
});

describe("given a new process without a plan that no organization has, while the former one runs", () => {
  it("starts, and does not write its plans before it leads", async () => {
    await preparePlans(first.sql, configured(after));
    expect(await newest()).toMatchObject({ limits: before, version: 1 });
  });
});

describe("given an organization that got a plan which the next leader does not configure", () => {
  beforeAll(async () => {
    Object.assign(gone, await tenancyOf(first).organization({ plan: "gone" }));
  });

  it("does not start another process, and names the plan and the number of its organizations", async () => {
    const { database, nats } = first.backends;
    const starting = startServiceProcess("management", {
      HALYARD_MODE: "development",
      HOST: "127.0.0.1",
      POSTGRES_URL: database.runtimeUrls.management,
      NATS_URL: nats.url,
      OPERATOR_TOKEN: key,
      PLANS: JSON.stringify(after),
    });
    const message = await starting.then(String, (error: Error) => error.message);
    expect(message).toContain("management ended with 2 before it listened");
    expect(message).toContain('PLANS has no plan "gone", which one organization has.');
  });

  it("keeps the plan when such a process becomes the leader, and logs a warning", async () => {
    await first.stop();
    // The plan was assigned after this process had checked the database.
    management = await openManagement({
      ...{ over: first.backends, plans: after, logger: configured(after).logger },
      checksPlans: false,
    });
    await eventually(async () => (await newest())?.version === 2);
    expect((await newest())?.limits).toEqual({ gone: before.gone, ...after });
    expect(warnings.map((line) => JSON.parse(line))).toContainEqual(
      expect.objectContaining({ plans: [{ plan: "gone", organizations: 1 }] }),
    );
    expect(await read(gone.id)).toMatchObject({ plan: "gone", limits: before.gone });
    expect((await addProject(gone.id)).status).toBe(201);
    expect((await addProject(gone.id)).status).toBe(201);
    expect((await addProject(gone.id)).status).toBe(429);
  });
});

describe("given a leader with other limits of a plan", () => {
  it("has them in the API and for new projects, and keeps existing projects", async () => {
    expect((await read(small.id)).limits).toEqual(after.small);
    expect((await addProject(small.id)).status).toBe(429);
    const path = `/api/v1/organizations/${small.id}/projects`;
    expect((await management.call(path, { key })).body.projects).toHaveLength(1);
  });

  it("does not write the entries of organizations again", async () => {
    expect(await entriesOf(management, `${small.id}.organization`)).toHaveLength(2);
  });

  it("accepts the plans in the snapshot for an organization, and no others", async () => {
    expect((await patch(small.id, { plan: "added" })).body.limits).toEqual(after.added);
    expect(await patch(small.id, { plan: "unused" })).toMatchObject({
      status: 400,
      body: { error: { message: '/plan must be one of "gone", "small", "added"' } },
    });
    expect((await patch(small.id, { plan: "small" })).status).toBe(200);
  });
});

describe("given another term of leadership", () => {
  const write = (plans: Record<string, PlanLimits>) =>
    management.sql.begin((tx) => writePlans(tx, configured(plans)));

  it("writes nothing with the same plans in another order", async () => {
    const count = (await published()).length;
    const { small, added } = after;
    const reversed = Object.fromEntries(Object.entries(small).toReversed()) as PlanLimits;
    await write({ added, small: reversed });
    expect(await published()).toHaveLength(count);
  });

  it("writes nothing without the lease", async () => {
    const count = (await published()).length;
    const { sql } = management;
    const monotonicMs = () => performance.now();
    const lease = createLease({ sql, name: uuidv7(), holder: uuidv7(), monotonicMs });
    await lease.acquire();
    await lease.release();
    const writing = lease.recordAsLeader((tx) => writePlans(tx, configured(before)));
    await expect(writing).rejects.toThrow(LeadershipLostError);
    expect(await published()).toHaveLength(count);
  });

  it("keeps a plan that an organization gets while the leader removes it", async () => {
    const { sql } = management;
    let writing: Promise<void> | undefined;
    await sql.begin(async (tx) => {
      await lockPlans(tx);
      await tx`update organizations set plan = 'added' where id = ${small.id}`;
      writing = write({ small: after.small });
      await eventually(async () => (await sql`select from pg_locks where not granted`).length > 0);
    });
    await writing;
    expect((await newest())?.limits).toMatchObject({ added: after.added });
  });

  it("removes a plan when no organization has it any more", async () => {
    await patch(small.id, { plan: "small" });
    await patch(gone.id, { plan: "small" });
    await write(after);
    expect((await newest())?.limits).toEqual(after);
    expect((await patch(gone.id, { plan: "gone" })).status).toBe(400);
  });
});
