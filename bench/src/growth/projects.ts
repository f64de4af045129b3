import type { Bench } from "../benchmark.ts";
import { authorized } from "../http/requests.ts";
import { peakResidentBytes } from "../processes/process-usage.ts";
import { openTables, startBackends } from "../system/backends.ts";
import { callApi, timedCall } from "../system/call-api.ts";
import { operatorToken, startEdge, startManagement, watchCpu } from "../system/services.ts";
import { create, createKey, createTenant, togglesInTurn } from "../system/tenant.ts";
import { during, nowMs, until } from "../time.ts";
import { growthBenchmark } from "./curve.ts";
import { insertEnvironments, insertFlags, startFilledManagement } from "./filled-management.ts";

const slowest = ["slowest concurrent PATCH of another organization", "ms"] as const;

export const addedEnvironmentCurve = growthBenchmark({
  name: "added-environment",
  summary: "creation of an environment, by flags of the project",
  method:
    "An environment and a client key are created, and an edge is polled until it returns all flags of the project. Meanwhile another organization toggles a flag, one request after the other.",
  sizes: { of: "flags", full: [1_000, 20_000], quick: [10, 50], rounds: 3 },
  costs: {
    created: ["POST to 201", "ms"],
    complete: ["POST to all flags on an edge", "ms"],
    slowest,
  },
  async prepare(bench, flags) {
    const { nats, management, tenant } = await startFilledManagement(bench, {
      fill: (sql, filled) => insertFlags(sql, filled, flags),
    });
    const besideOthers = await prepareOthers(management.url);
    const edge = await startEdge(bench, { nats });
    const path = `projects/${tenant.projectId}/environments`;
    async function add(name: string) {
      const beganMs = nowMs();
      const { id: environmentId } = await create(management.url, { path, body: { name } });
      const created = nowMs() - beganMs;
      const key = await createKey(management.url, { ...tenant, environmentId }, "client");
      const isComplete = async () => {
        const response = await fetchFlags(edge.url, key);
        const { flags: given = {} } = (await response.json()) as { flags?: object };
        return Object.keys(given).length >= flags;
      };
      await until("the edge has all flags", isComplete, { pauseMs: 50 });
      return { created, complete: nowMs() - beganMs };
    }
    let added = 0;
    return () => besideOthers(add(`added-${added++}`));
  },
});

const deletedFlags = 950;
const polling = { timeoutMs: 300_000, pauseMs: 20 };

export const deletedProjectCurve = growthBenchmark({
  name: "deleted-project",
  summary: `deletion of a project with ${deletedFlags} flags, by environments of the project`,
  method:
    "A project is deleted. Meanwhile another organization toggles a flag, one request after the other, until the database contains no flag of the deleted project.",
  // A project can be deleted only once.
  sizes: { of: "environments", full: [1, 50], quick: [1, 3], rounds: 1 },
  costs: {
    answered: ["DELETE to 204", "ms"],
    stopped: ["DELETE to 401 for its key on an edge", "ms"],
    removed: ["DELETE to no flags and states in the database", "ms"],
    slowest,
  },
  async prepare(bench, environments) {
    const { nats, management, tenant, sql } = await startFilledManagement(bench, {
      async fill(sql, filled) {
        // The tenant already has one environment.
        await insertEnvironments(sql, filled, environments - 1);
        await insertFlags(sql, filled, bench.quick ? 5 : deletedFlags);
      },
    });
    const besideOthers = await prepareOthers(management.url);
    const edge = await startEdge(bench, { nats });
    const { organizationId, projectId } = tenant;
    const key = await createKey(management.url, tenant, "client");
    const isStatus = (status: number) => async () => {
      const response = await fetchFlags(edge.url, key);
      await response.arrayBuffer();
      return response.status === status;
    };
    async function remove() {
      const beganMs = nowMs();
      const path = `organizations/${organizationId}/projects/${projectId}?confirm=${projectId}`;
      const request = { method: "DELETE", token: operatorToken, status: 204 };
      await callApi(`${management.url}/api/v1/${path}`, request);
      const answered = nowMs() - beganMs;
      await until("the edge rejects the key", isStatus(401), polling);
      const stopped = nowMs() - beganMs;
      const isRemoved = async () =>
        (await sql`select from flags where project_id = ${projectId} limit 1`).count === 0;
      await until("the database contains no flags", isRemoved, polling);
      return { answered, stopped, removed: nowMs() - beganMs };
    }
    return async () => {
      await until("the edge knows the key", isStatus(200), polling);
      return besideOthers(remove());
    };
  },
});

const fetchFlags = (edgeUrl: string, key: string) =>
  fetch(`${edgeUrl}/api/v1/sdk/flags`, { headers: authorized(key) });

/** Creates another organization. Returns a function that toggles its flag during some work, one request at a time. */
async function prepareOthers(managementUrl: string) {
  const toggle = togglesInTurn(managementUrl, await createTenant(managementUrl, 1));
  return async <Costs>(work: Promise<Costs>): Promise<Costs & { slowest: number }> => {
    let slowest = 0;
    const costs = await during(work, async () => {
      const { sentMs, answeredMs } = await toggle();
      slowest = Math.max(slowest, answeredMs - sentMs);
    });
    return { ...costs, slowest };
  };
}

/** Total number of listed flags at each size. */
const listedFlags = 100_000;

export const flagListCurve = growthBenchmark({
  name: "flag-list",
  summary: "the list of a project's flags without paging, by flags",
  method: "One client sends `GET /api/v1/flags` without `limit`.",
  sizes: { of: "flags", full: [1_000, 100_000], quick: [10, 50], rounds: 2 },
  costs: {
    time: ["time per flag", "µs"],
    cpu: ["CPU of management per flag", "µs"],
    peak: ["peak resident memory of management", "MB"],
  },
  note: "Each round starts another process of management.",
  prepare: prepareList,
});

async function prepareList(bench: Bench, flags: number) {
  const backends = await startBackends(bench);
  const start = () => startManagement(bench, backends);
  const first = await start();
  const tenant = await createTenant(first.url, 0);
  // The list does not read the snapshot, which does not contain these flags.
  await insertFlags(openTables(bench, backends.postgres, "management"), tenant, flags);
  await first.stop();
  const lists = bench.quick ? 1 : listedFlags / flags;
  return async () => {
    const management = await start();
    const list = () => timedCall(`${management.url}/api/v1/flags`, { token: tenant.serverKey });
    await list();
    const used = await watchCpu(management, backends.postgres);
    const beganMs = nowMs();
    for (let count = 0; count < lists; count += 1) await list();
    const perFlag = (usedMs: number) => (usedMs * 1e3) / (lists * flags);
    const time = perFlag(nowMs() - beganMs);
    const cpu = perFlag((await used()).serviceMs);
    const peak = peakResidentBytes(management.pid) / 1e6;
    await management.stop();
    return { time, cpu, peak };
  };
}
