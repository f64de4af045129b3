import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { awaitLockWaiters, awaitNoConnections, lockTable } from "../../src/system/disturbances.ts";
import { type Management, type System, startSystem } from "../../src/system/system.ts";
import { createTenant, must, operatorToken, type Tenant } from "../../src/system/tenancy.ts";

const flagCount = 60;

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

  /** The operator's bypass applies a request as any caller does. */
  const apply = ({ id }: { id: string }) =>
    must(`${management().url}/api/v1/change-requests/${id}/bypass`, {
      ...{ method: "POST", key: operatorToken, body: { reason: "A drill" } },
    });

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

  async function killDuring(moment: (typeof moments)[number], request: { id: string }) {
    const unlock = moment.table && (await lockTable(system.sql, moment.table, "share"));
    const answered = apply(request).catch(() => undefined);
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

  it.each(moments.map((moment, index) => ({ ...moment, percentage: index + 10 })))(
    "makes all changes or none, and each once: $name",
    async ({ percentage, ...moment }) => {
      const request = await openRequest(percentage);
      const [before] = await readPercentages();
      await killDuring(moment, request);
      const { status } = await byKey("GET", `change-requests/${request.id}`);
      const expected = status === "applied" ? percentage : before;
      expect(["open", "applied"]).toContain(status);
      expect(await readPercentages()).toEqual(Array(flagCount).fill(expected));
      expect((await apply(request)).status).toBe("applied");
      expect(await readPercentages()).toEqual(Array(flagCount).fill(percentage));
      expect(await countEntries(percentage)).toEqual(Array(flagCount).fill(1));
    },
  );
});
