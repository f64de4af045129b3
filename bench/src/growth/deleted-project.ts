import { setTimeout as delay } from "node:timers/promises";
import type { Sql } from "@halyard/postgres";
import type { Bench } from "../benchmark.ts";
import { nowMs } from "../clock.ts";
import { awaitReady, operatorToken, startEdge } from "../system/services.ts";
import { create, createTenant, type Tenant } from "../system/tenant.ts";
import { toggleSteadily } from "../system/toggles.ts";
import type { Curve, Side } from "./curve.ts";
import { insertEnvironments, insertFlags, openManagementTables } from "./fill-tables.ts";
import { startFilledManagement } from "./filled-management.ts";

const answered = "DELETE to 204";
const stopped = "DELETE to 401 for its key on an edge";
const removed = "DELETE to no flags and states in the database";
const slowest = "slowest concurrent PATCH of another organization";
const flags = 950;
const quickFlags = 5;
const pauseMs = 20;
const timeoutMs = 300_000;

export const deletedProjectCurve: Curve = {
  name: "deleted-project",
  summary: `deletion of a project with ${flags} flags, by environments of the project`,
  method:
    "A project is deleted. Meanwhile another organization toggles a flag, one request after the other, until the database contains no flag of the deleted project.",
  of: "environments",
  sizes: [1, 50],
  quickSizes: [1, 3],
  // A project can be deleted only once.
  rounds: 1,
  costs: [
    { what: answered, unit: "ms" },
    { what: stopped, unit: "ms" },
    { what: removed, unit: "ms" },
    { what: slowest, unit: "ms" },
  ],
  open: async (bench) => (environments) => prepare(bench, environments),
};

async function prepare(bench: Bench, environments: number): Promise<Side> {
  const { nats, postgres, management, tenant } = await startFilledManagement(bench, {
    flags: 0,
    fill: async (sql, filled) => {
      // The tenant already has one environment.
      await insertEnvironments(sql, filled, environments - 1);
      await insertFlags(sql, filled, bench.quick ? quickFlags : flags);
    },
  });
  const other = await createTenant(management.url, 1);
  const edge = await startEdge(bench, { natsUrl: nats.url, core: undefined });
  await awaitReady(edge);
  const sql = openManagementTables(bench, postgres);
  const { key = "" } = await create(management.url, {
    path: `projects/${tenant.projectId}/environments/${tenant.environmentId}/keys`,
    body: { kind: "client", name: "ending", user_id: tenant.userId },
  });
  const statusAtEdge = async () =>
    (await fetch(`${edge.url}/api/v1/sdk/flags`, { headers: { authorization: `Bearer ${key}` } }))
      .status;
  return {
    nats,
    postgres,
    async measure() {
      await until(async () => (await statusAtEdge()) === 200);
      const others = toggleSteadily(management.url, other);
      const beganMs = nowMs();
      await deleteProject(management.url, tenant);
      const answeredMs = nowMs() - beganMs;
      await until(async () => (await statusAtEdge()) === 401);
      const stoppedMs = nowMs() - beganMs;
      await until(() => isRemoved(sql, tenant));
      return {
        [answered]: answeredMs,
        [stopped]: stoppedMs,
        [removed]: nowMs() - beganMs,
        [slowest]: await others.stop(),
      };
    },
  };
}

async function deleteProject(url: string, { organizationId, projectId }: Tenant): Promise<void> {
  const path = `organizations/${organizationId}/projects/${projectId}?confirm=${projectId}`;
  const answer = await fetch(`${url}/api/v1/${path}`, {
    method: "DELETE",
    headers: { authorization: `Bearer ${operatorToken}` },
  });
  if (answer.status !== 204) throw new Error(`DELETE returned ${answer.status}`);
}

async function isRemoved(sql: Sql, { projectId }: Tenant): Promise<boolean> {
  const [row] = await sql<[{ gone: boolean }]>`
    select not exists (select from flags where project_id = ${projectId}) as gone`;
  return row.gone;
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const beganMs = nowMs();
  while (!(await condition())) {
    if (nowMs() - beganMs > timeoutMs) throw new Error("the deletion was not completed in time");
    await delay(pauseMs);
  }
}
