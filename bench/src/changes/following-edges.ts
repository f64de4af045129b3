import { join } from "node:path";
import type { Bench } from "../benchmark.ts";
import { startChild } from "../processes/child-process.ts";
import { awaitReady, startEdge } from "../system/services.ts";
import { until } from "../until.ts";
import type { ChangingSystem } from "./changing-system.ts";

/** Edges that writes wait for: real processes, or many simulated edges in one process. */
export type EdgeSet = { processes: number } | { simulated: number };

export type FollowingEdges = { pids: readonly number[]; stop(): Promise<void> };

/** Resolves when management waits for exactly these edges. */
export async function startEdges(
  bench: Bench,
  system: ChangingSystem,
  edges: EdgeSet,
): Promise<FollowingEdges> {
  const count = "simulated" in edges ? edges.simulated : edges.processes;
  await until("management waits for no edge", async () => (await liveEdges(system)) === 0);
  const following =
    "simulated" in edges
      ? await startSimulated(bench, system, edges.simulated)
      : await startProcesses(bench, system, edges.processes);
  await until(
    `management waits for ${count} edges`,
    async () => (await liveEdges(system)) === count,
  );
  return following;
}

const liveEdges = (system: ChangingSystem) => system.readMetric("halyard_live_edges");

async function startProcesses(
  bench: Bench,
  system: ChangingSystem,
  count: number,
): Promise<FollowingEdges> {
  const natsUrl = system.nats.url;
  const edges = await Promise.all(
    Array.from({ length: count }, () => startEdge(bench, { natsUrl, core: undefined })),
  );
  await Promise.all(edges.map(awaitReady));
  return {
    pids: edges.map(({ child }) => child.pid),
    stop: async () => void (await Promise.all(edges.map(({ child }) => child.stop()))),
  };
}

async function startSimulated(
  bench: Bench,
  system: ChangingSystem,
  count: number,
): Promise<FollowingEdges> {
  const child = await startChild(bench, {
    program: join(import.meta.dirname, "simulated-edges-process.ts"),
    core: undefined,
  });
  await child.ask({ natsUrl: system.nats.url, start: count });
  return {
    pids: [child.pid],
    async stop() {
      await child.ask({ stop: true });
      await child.stop();
    },
  };
}
