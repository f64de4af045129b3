import type { CallOptions } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { awaitLockWaiters, awaitNoConnections, lockTable } from "../../src/system/disturbances.ts";
import { type BrowserHeaders, signIn } from "../../src/system/sign-in.ts";
import { type Management, type System, startSystem } from "../../src/system/system.ts";
import { createTenant, must, operatorToken, type Tenant } from "../../src/system/tenancy.ts";

const flagCount = 60;

type OpenRequest = { id: string; content_hash: string };

/** Moments at which management is killed: while it waits for a table, or some time after the request is sent. */
const moments = [
  { name: "before the first change is written", table: "history" },
  { name: "before the messages are written and the transaction commits", table: "outbox" },
  { name: "at once", afterMs: 5 },
  { name: "some milliseconds later", afterMs: 40 },
  { name: "later", afterMs: 120 },
];

describe("given a management that is killed while it applies a change request", () => {
  let system: System;
  let tenant: Tenant;
  let approver: BrowserHeaders;
  const flagIds: string[] = [];
  beforeAll(async () => {
    system = await startSystem({ managements: 1, edges: 0 });
    const { url } = management();
    tenant = await createTenant(url, { name: "Protected" });
    for (let index = 0; index < flagCount; index += 1)
      flagIds.push((await byKey("POST", "flags", { key: `flag-${index}`, name: "A flag" })).id);
    const { projectId, environmentId } = tenant;
    await must(`${url}/api/v1/projects/${projectId}/environments/${environmentId}`, {
      ...{ method: "PATCH", key: operatorToken, body: { protected: { approvals: 1 } } },
    });
    const person = { email: "ben@example.com", role: "approver" };
    approver = (await signIn(url, tenant, person)).headers;
  });
  afterAll(() => system?.close());

  const management = () => system.managements[0] as Management;
  const byKey = (method: string, path: string, body?: object) =>
    must(`${management().url}/api/v1/${path}`, { method, key: tenant.serverKey, body });

  const openRequest = (percentage: number) =>
    byKey("POST", "change-requests", {
      title: "All flags",
      changes: flagIds.map((flag_id) => ({
        ...{ kind: "state", flag_id, environment_id: tenant.environmentId },
        patch: { rollout_percentage: percentage },
      })),
    });

  const step = (request: { id: string }, name: string, options: CallOptions) =>
    must(`${management().url}/api/v1/change-requests/${request.id}/${name}`, {
      ...{ method: "POST", ...options },
    });

  /** The ways of applying a request, each with what precedes it and the status of a request that is not applied. */
  const ways = {
    "an approved request": {
      prepare: ({ id, content_hash }: OpenRequest) =>
        step({ id }, "approve", { headers: approver, body: { content_hash } }),
      apply: (request: OpenRequest) => step(request, "apply", { headers: approver }),
      unapplied: "approved",
    },
    "a bypass": {
      prepare: async () => undefined,
      apply: (request: OpenRequest) =>
        step(request, "bypass", { key: operatorToken, body: { reason: "A drill" } }),
      unapplied: "open",
    },
  };

  const readPercentages = async () =>
    (
      await system.sql<{ percentage: number }[]>`
        select (content -> 'rollout_percentage')::integer as percentage
        from flag_states where environment_id = ${tenant.environmentId}`
    ).map(({ percentage }) => percentage);

  /** Returns how many entries of the history have the percentage, by flag. */
  const countEntries = async (percentage: number) =>
    (
      await system.sql<{ count: number }[]>`
        select count(*)::integer as count from history
        where environment_id = ${tenant.environmentId}
          and content -> 'rollout_percentage' = to_jsonb(${percentage}::integer)
        group by flag_id`
    ).map(({ count }) => count);

  async function killDuring(moment: (typeof moments)[number], apply: () => Promise<unknown>) {
    const unlock = moment.table && (await lockTable(system.sql, moment.table, "share"));
    const answered = apply().catch(() => undefined);
    if (moment.table) await awaitLockWaiters(system.sql, moment.table);
    else await new Promise((resolve) => setTimeout(resolve, moment.afterMs));
    const killed = management();
    system.managements.shift();
    await killed.kill();
    if (unlock) await unlock();
    await answered;
    await awaitNoConnections(system.sql);
    await system.startManagement();
  }

  const cases = Object.entries(ways).flatMap(([way, { prepare, apply, unapplied }], at) =>
    moments.map((moment, index) => ({
      ...{ ...moment, way, prepare, apply, unapplied },
      percentage: 10 + at * moments.length + index,
    })),
  );

  it.each(cases)(
    "makes all changes of $way or none, and each once: $name",
    async ({ percentage, prepare, apply, unapplied, ...moment }) => {
      const request = await openRequest(percentage);
      await prepare(request);
      const [before] = await readPercentages();
      await killDuring(moment, () => apply(request));
      const { status } = await byKey("GET", `change-requests/${request.id}`);
      const expected = status === "applied" ? percentage : before;
      expect([unapplied, "applied"]).toContain(status);
      expect(await readPercentages()).toEqual(Array(flagCount).fill(expected));
      expect((await apply(request)).status).toBe("applied");
      expect(await readPercentages()).toEqual(Array(flagCount).fill(percentage));
      expect(await countEntries(percentage)).toEqual(Array(flagCount).fill(1));
    },
  );
});
