import { startChangingSystem } from "../changes/changing-system.ts";
import { startEdges } from "../changes/following-edges.ts";
import type { Curve } from "./curve.ts";

const latency = "PATCH to 200, visible on all edges, one client, median";
const managementCpu = "CPU of management per PATCH";
const brokerCpu = "CPU of NATS per PATCH";
const edgeCpu = "CPU of each edge per PATCH";
const measureMs = 3_000;
const quickMeasureMs = 100;

export const edgesCurve: Curve = {
  name: "edges",
  summary: "cost of a PATCH of a flag, by edges",
  method: "One client toggles 1,000 flags. A `200` is sent when all edges serve the change.",
  of: "edges",
  sizes: [1, 2, 4, 8],
  quickSizes: [1, 2],
  rounds: 2,
  costs: [
    { what: latency, unit: "ms" },
    { what: managementCpu, unit: "ms" },
    { what: brokerCpu, unit: "ms" },
    { what: edgeCpu, unit: "ms" },
  ],
  async open(bench) {
    const system = await startChangingSystem(bench);
    const { nats, postgres } = system;
    return async (edges) => ({
      nats,
      postgres,
      async measure() {
        const following = await startEdges(bench, system, { processes: edges });
        const { answers, cpuMs, medianLatencyMs } = await system.change({
          measureMs: bench.quick ? quickMeasureMs : measureMs,
          connections: 1,
          alsoWatch: following.pids,
        });
        await following.stop();
        const [management = 0, , broker = 0, ...each] = cpuMs.map((used) => used / answers);
        return {
          [latency]: medianLatencyMs,
          [managementCpu]: management,
          [brokerCpu]: broker,
          [edgeCpu]: each.reduce((sum, next) => sum + next, 0) / edges,
        };
      },
    });
  },
};
