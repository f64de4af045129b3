import type { PlanLimits } from "@halyard/contracts";
import { json } from "@halyard/postgres";
import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import { v7 as uuidv7 } from "uuid";
import { applyPlans } from "../src/relay/apply-plans.ts";
import { createLease, LeadershipLostError } from "../src/relay/lease.ts";
import { operatorToken as key, type Management, openManagement } from "./management-fixture.ts";
import { entriesOf, tenancyOf } from "./tenancy-fixture.ts";

/** Tests a restart of management over the same database with changed plans. */
const limits = (requests: number, projects: number): PlanLimits => ({
  requests_per_month: requests,
  sse_connections: 10,
  projects,
});

const before = {
  small: limits(100, 3),
  same: limits(1_000, 30),
  many: limits(100, 3),
  gone: limits(100, 2),
};
const after = {
  small: limits(200, 1),
  // The same limits in another order.
  same: { projects: 30, sse_connections: 10, requests_per_month: 1_000 },
  many: limits(300, 3),
};

let first: Management;
let management: Management;
const warnings: string[] = [];
const organizations: Record<string, string> = {};
const manyIds = Array.from({ length: 450 }, () => uuidv7());

beforeAll(async () => {
  first = await openManagement({ plans: before });
  const given = tenancyOf(first);
  for (const plan of ["small", "same", "gone"])
    organizations[plan] = (await given.organization({ plan })).id;
  organizations.alsoGone = (await given.organization({ plan: "gone" })).id;
  organizations.unrecorded = (await given.organization({ plan: "same" })).id;
  await given.project(idOf("small"));
  await first.sql`
    insert into organizations
    select id, 'One of many', 'many', 1, now(), now(), ${json(before.many)}
    from unnest(${manyIds}::uuid[]) as id`;
  await first.sql`update organizations set limits = null where id = ${idOf("unrecorded")}`;
  await first.stop();
  const logger = pino({ level: "warn" }, { write: (line) => void warnings.push(line) });
  management = await openManagement({ over: first.backends, plans: after, logger });
  await allIsSent();
});
afterAll(async () => {
  await management?.stop();
  await first?.close();
});

function idOf(name: string): string {
  return organizations[name] ?? "";
}

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

const entries = (id: string) => entriesOf(management, `${id}.organization`);

/** Waits until all entries are sent. The many organizations were inserted without entries. */
async function allIsSent(): Promise<void> {
  await eventually(async () => {
    const [rows] = await management.sql<[{ unsent: number; ofMany: number }]>`
      select count(*) filter (where sent_at is null)::integer as unsent,
        count(*) filter (where subject = any(${manyIds.map((id) => `${id}.organization`)}))::integer
          as "ofMany"
      from outbox`;
    return rows.unsent === 0 && rows.ofMany === manyIds.length;
  });
}

describe("given a plan with changed limits", () => {
  it("applies the limits to its organization as a new version", async () => {
    const id = idOf("small");
    expect((await entries(id)).at(-1)).toMatchObject({
      plan: "small",
      limits: after.small,
      project_count: 1,
      version: 3,
    });
    expect((await read(id)).limits).toEqual(after.small);
  });

  it("rejects projects above the limit, and keeps existing ones", async () => {
    expect((await addProject(idOf("small"))).status).toBe(429);
    const path = `/api/v1/organizations/${idOf("small")}/projects`;
    expect((await management.call(path, { key })).body.projects).toHaveLength(1);
  });

  it("updates many organizations, each once", async () => {
    const found = await management.sql`
      select distinct version, limits from organizations where plan = 'many'`;
    expect([...found]).toEqual([{ version: 2, limits: after.many }]);
  });

  it("does not update organizations with an unchanged plan", async () => {
    expect(await entries(idOf("same"))).toHaveLength(1);
  });

  it("records the limits of an organization without recorded limits", async () => {
    expect(await entries(idOf("unrecorded"))).toMatchObject([
      { version: 1 },
      { version: 2, limits: after.same },
    ]);
  });
});

describe("given a process with old plans that is no longer the leader", () => {
  it("does not apply its plans", async () => {
    const { sql } = management;
    const monotonicMs = () => performance.now();
    const lease = createLease({ sql, name: uuidv7(), holder: uuidv7(), monotonicMs });
    await lease.acquire();
    await lease.release();
    const applying = applyPlans({ lease, plans: before, now: () => new Date(), newId: uuidv7 });
    await expect(applying).rejects.toThrow(LeadershipLostError);
    expect((await read(idOf("same"))).limits).toEqual(before.same);
    expect((await entries(idOf("small"))).at(-1)).toMatchObject({ limits: after.small });
  });
});

describe("given a plan that is no longer configured", () => {
  it("keeps the limits of its organizations, and logs a warning", async () => {
    expect(await read(idOf("gone"))).toMatchObject({ plan: "gone", limits: before.gone });
    expect(await entries(idOf("gone"))).toHaveLength(1);
    const logged = warnings.map((line) => JSON.parse(line)).filter(({ plan }) => plan === "gone");
    expect(logged[0]).toMatchObject({ plan: "gone", organizations: 2 });
  });

  it("allows as many projects as before", async () => {
    const id = idOf("gone");
    expect((await addProject(id)).status).toBe(201);
    expect((await addProject(id)).status).toBe(201);
    expect((await addProject(id)).status).toBe(429);
    expect((await entries(id)).at(-1)).toMatchObject({ limits: before.gone, project_count: 2 });
  });

  it("allows an organization to keep the plan, to be renamed and to leave it, but not to return", async () => {
    const id = idOf("alsoGone");
    expect((await patch(id, { name: "New", plan: "gone" })).body).toMatchObject({
      name: "New",
      plan: "gone",
      limits: before.gone,
    });
    expect((await patch(id, { plan: "same" })).body.limits).toEqual(after.same);
    expect((await patch(id, { plan: "gone" })).status).toBe(400);
  });
});
