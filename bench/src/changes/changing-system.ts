import type { Bench } from "../benchmark.ts";
import { leadInMs, startLoad } from "../http/load.ts";
import { startChild } from "../processes/child-process.ts";
import { type Backends, type Nats, startBackends } from "../system/backends.ts";
import { startEdge, startManagement } from "../system/services.ts";
import { createTenant, togglePlans } from "../system/tenant.ts";
import { until } from "../time.ts";
import type { SimulatedEdgesApi } from "./simulated-edges-process.ts";

export type ChangingSystem = Awaited<ReturnType<typeof startChangingSystem>>;
export const clients = 32;
const flags = 1_000;
const quickFlags = 50;

/** Starts management with a project of many flags, and clients that toggle one flag after the other. */
export async function startChangingSystem(bench: Bench) {
  const backends = await startBackends(bench);
  const { nats, postgres } = backends;
  let management = await startManagement(bench, backends);
  const tenant = await createTenant(management.url, bench.quick ? quickFlags : flags);
  const load = await startLoad(bench);
  const requests = togglePlans(tenant);
  return {
    ...backends,
    tenant,
    /** Watches management, PostgreSQL, NATS and the given processes, in this order. */
    change(options: { measureMs: number; connections?: number; alsoWatch?: readonly number[] }) {
      const { measureMs, connections = clients, alsoWatch = [] } = options;
      const watched = [management, { pid: postgres.pid, tree: true }, nats];
      return load.call.run({
        ...{ url: management.url, connections, leadInMs: leadInMs(bench), measureMs },
        ...{ requests, expectedStatus: 200 },
        watch: [...watched, ...alsoWatch.map((pid) => ({ pid }))],
      });
    },
    /** Returns the sum of a metric of management over its labels. */
    async readMetric(name: string) {
      const text = await (await fetch(`${management.metricsUrl}/metrics`)).text();
      const values = text.split("\n").filter((line) => line.startsWith(`${name}{`));
      return values.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
    },
    async restartManagement() {
      await management.stop();
      management = await startManagement(bench, backends);
    },
  };
}

/** Starts edges that writes wait for: real processes, or simulated edges in one process. */
export async function startEdges(
  bench: Bench,
  system: ChangingSystem,
  { count, simulated = false }: { count: number; simulated?: boolean },
) {
  const isLive = (edges: number) => async () =>
    (await system.readMetric("halyard_live_edges")) === edges;
  await until("management waits for no edge", isLive(0));
  const following = await (simulated ? startSimulated : startProcesses)(bench, system, count);
  await until(`management waits for ${count} edges`, isLive(count));
  return following;
}

async function startProcesses(bench: Bench, { nats }: Backends, count: number) {
  const starting = Array.from({ length: count }, () => startEdge(bench, { nats }));
  const edges = await Promise.all(starting);
  return {
    pids: edges.map(({ pid }) => pid),
    stop: () => Promise.all(edges.map((edge) => edge.stop())),
  };
}

async function startSimulated(bench: Bench, { nats }: Backends, count: number) {
  const simulated = await launchSimulated(bench);
  await simulated.follow(nats, count);
  return simulated;
}

/** Starts a process of simulated edges. `follow` resolves when they have read the snapshot. */
export async function launchSimulated(bench: Bench) {
  const program = "changes/simulated-edges-process.ts";
  const child = await startChild<SimulatedEdgesApi>(bench, { program, core: "load" });
  return {
    pids: [child.pid],
    follow: ({ url }: Nats, count: number) => child.call.start({ natsUrl: url, count }),
    async stop() {
      await child.call.stop();
      await child.stop();
    },
  };
}
