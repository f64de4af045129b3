import type { Sql } from "@halyard/postgres";
import type { Bench } from "../benchmark.ts";
import { startLoad } from "../http/load.ts";
import { awaitReady, startEdge } from "../system/services.ts";
import type { Tenant } from "../system/tenant.ts";
import { toggles } from "../system/toggles.ts";
import type { Curve, Side } from "./curve.ts";
import { insertEnvironments, insertKeys, insertRecords } from "./fill-tables.ts";
import { startFilledManagement } from "./filled-management.ts";

const latency = "PATCH to 200, one client, median";
const managementCpu = "CPU of management per PATCH";
const databaseCpu = "CPU of PostgreSQL per PATCH";
const edgeCpu = "CPU of the edge per PATCH";

const flags = 100;
const quickFlags = 5;
const measureMs = 3_000;
const quickMeasureMs = 100;

export const environmentsCurve = patchCurve({
  name: "environments",
  summary: "cost of a PATCH of a flag, by environments of the project",
  method: "One client toggles 100 flags. One edge follows.",
  of: "environments",
  sizes: [1, 50],
  quickSizes: [1, 3],
  // The tenant already has one environment.
  fill: (sql, tenant, count) => insertEnvironments(sql, tenant, count - 1),
});

export const keysCurve = patchCurve({
  name: "keys",
  summary: "cost of a PATCH of a flag, by API keys of the environment",
  method: "One client toggles 100 flags. One edge follows.",
  of: "keys",
  sizes: [10, 10_000],
  quickSizes: [3, 10],
  fill: insertKeys,
});

export const recordsCurve = patchCurve({
  name: "records",
  summary: "cost of a PATCH of a flag, by rows of its project's history and as many audit entries",
  method:
    "One client toggles 100 flags. One edge follows. The rows are inserted into the tables of history and audit log, for the same flags.",
  of: "rows",
  sizes: [1_000, 1_000_000],
  quickSizes: [10, 100],
  fill: insertRecords,
});

type PatchCurve = Pick<Curve, "name" | "summary" | "method" | "of" | "sizes" | "quickSizes"> & {
  fill(sql: Sql, tenant: Tenant, count: number): Promise<void>;
};

function patchCurve({ fill, ...curve }: PatchCurve): Curve {
  return {
    ...curve,
    rounds: 3,
    costs: [
      { what: latency, unit: "ms" },
      { what: managementCpu, unit: "ms" },
      { what: databaseCpu, unit: "ms" },
      { what: edgeCpu, unit: "ms" },
    ],
    open: async (bench) => {
      const load = await startLoad(bench);
      return (count) => prepare(bench, { load, fill: (sql, tenant) => fill(sql, tenant, count) });
    },
  };
}

async function prepare(
  bench: Bench,
  options: {
    load: Awaited<ReturnType<typeof startLoad>>;
    fill(sql: Sql, tenant: Tenant): Promise<void>;
  },
): Promise<Side> {
  const { nats, postgres, management, tenant } = await startFilledManagement(bench, {
    flags: bench.quick ? quickFlags : flags,
    fill: options.fill,
  });
  const edge = await startEdge(bench, { natsUrl: nats.url, core: undefined });
  await awaitReady(edge);
  const requests = toggles(tenant);
  return {
    nats,
    postgres,
    async measure() {
      const { answers, cpuMs, medianLatencyMs } = await options.load.run({
        url: management.url,
        connections: 1,
        measureMs: bench.quick ? quickMeasureMs : measureMs,
        requests,
        expectedStatus: 200,
        watch: [
          { pid: management.child.pid },
          { pid: postgres.pid, tree: true },
          { pid: edge.child.pid },
        ],
      });
      const [ofManagement = 0, ofDatabase = 0, ofEdge = 0] = cpuMs.map((used) => used / answers);
      return {
        [latency]: medianLatencyMs,
        [managementCpu]: ofManagement,
        [databaseCpu]: ofDatabase,
        [edgeCpu]: ofEdge,
      };
    },
  };
}
