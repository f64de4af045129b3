import type { Sql } from "@halyard/postgres";
import type { Bench } from "../benchmark.ts";
import {
  type ChangingSystem,
  startChangingSystem,
  startEdges,
} from "../changes/changing-system.ts";
import { leadInMs, startLoad } from "../http/load.ts";
import { startEdge } from "../system/services.ts";
import { type Tenant, togglePlans } from "../system/tenant.ts";
import { type Curve, growthBenchmark } from "./curve.ts";
import {
  insertEnvironments,
  insertKeys,
  insertRecords,
  startFilledManagement,
} from "./filled-management.ts";

const measureMsOf = ({ quick }: Bench) => (quick ? 100 : 3_000);

export const environmentsCurve = patchCurve({
  name: "environments",
  summary: "cost of a PATCH of a flag, by environments of the project",
  method: "One client toggles 100 flags. One edge follows.",
  sizes: { of: "environments", full: [1, 50], quick: [1, 3], rounds: 3 },
  // The tenant already has one environment.
  fill: (sql, tenant, count) => insertEnvironments(sql, tenant, count - 1),
});

export const keysCurve = patchCurve({
  ...{ name: "keys", summary: "cost of a PATCH of a flag, by API keys of the environment" },
  method: "One client toggles 100 flags. One edge follows.",
  ...{ sizes: { of: "keys", full: [10, 10_000], quick: [3, 10], rounds: 3 }, fill: insertKeys },
});

export const recordsCurve = patchCurve({
  name: "records",
  summary: "cost of a PATCH of a flag, by rows of its project's history and as many audit entries",
  method:
    "One client toggles 100 flags. One edge follows. The rows are inserted into the tables of history and audit log, for the same flags.",
  sizes: { of: "rows", full: [1_000, 1_000_000], quick: [10, 100], rounds: 3 },
  fill: insertRecords,
});

type PatchCurve = Pick<Curve, "name" | "summary" | "method" | "sizes"> & {
  fill(sql: Sql, tenant: Tenant, count: number): Promise<void>;
};

function patchCurve({ fill, ...curve }: PatchCurve) {
  return growthBenchmark({
    ...curve,
    costs: {
      latency: ["PATCH to 200, one client, median", "ms"],
      management: ["CPU of management per PATCH", "ms"],
      database: ["CPU of PostgreSQL per PATCH", "ms"],
      ofEdge: ["CPU of the edge per PATCH", "ms"],
    },
    async prepare(bench, count) {
      const { nats, postgres, management, tenant } = await startFilledManagement(bench, {
        flags: bench.quick ? 5 : 100,
        fill: (sql, filled) => fill(sql, filled, count),
      });
      const edge = await startEdge(bench, { nats });
      const load = await startLoad(bench);
      const requests = togglePlans(tenant);
      return async () => {
        const { answers, cpuMs, medianLatencyMs } = await load.call.run({
          ...{ url: management.url, connections: 1, leadInMs: leadInMs(bench) },
          ...{ measureMs: measureMsOf(bench), requests, expectedStatus: 200 },
          watch: [management, { pid: postgres.pid, tree: true }, edge],
        });
        const [ofManagement = 0, database = 0, ofEdge = 0] = cpuMs.map((used) => used / answers);
        return { latency: medianLatencyMs, management: ofManagement, database, ofEdge };
      };
    },
  });
}

/** One system of each run. Its edges are replaced. */
const systems = new WeakMap<Bench, Promise<ChangingSystem>>();

export const edgesCurve = growthBenchmark({
  name: "edges",
  summary: "cost of a PATCH of a flag, by edges",
  method: "One client toggles 1,000 flags. A `200` is sent when all edges serve the change.",
  sizes: { of: "edges", full: [1, 2, 4, 8], quick: [1, 2], rounds: 2 },
  costs: {
    latency: ["PATCH to 200, visible on all edges, one client, median", "ms"],
    management: ["CPU of management per PATCH", "ms"],
    broker: ["CPU of NATS per PATCH", "ms"],
    ofEdge: ["CPU of each edge per PATCH", "ms"],
  },
  async prepare(bench, edges) {
    const started = systems.get(bench) ?? startChangingSystem(bench);
    systems.set(bench, started);
    const system = await started;
    return async () => {
      const following = await startEdges(bench, system, { count: edges });
      const { answers, cpuMs, medianLatencyMs } = await system.change({
        ...{ measureMs: measureMsOf(bench), connections: 1, alsoWatch: following.pids },
      });
      await following.stop();
      const [management = 0, , broker = 0, ...each] = cpuMs.map((used) => used / answers);
      const ofEdge = each.reduce((sum, next) => sum + next, 0) / edges;
      return { latency: medianLatencyMs, management, broker, ofEdge };
    };
  },
});
