import type { Bench } from "../benchmark.ts";
import { memoryGoal, type Polling } from "../http/beside-bare.ts";
import { captureAnswer, headerOf } from "../http/capture-answer.ts";
import { startNats } from "../system/backends.ts";
import { awaitReady, type Service, startEdge } from "../system/services.ts";
import { snapshotContent } from "../system/snapshot-content.ts";
import { writeSnapshot } from "../system/write-snapshot.ts";

/** An edge with one environment, and the two forms of an SDK's poll. */
export type PolledEdge = {
  edge: Service;
  natsVersion: string;
  polls: readonly Polling[];
};

export const flags = 100;

const goal = { of: "ratio", atLeast: 0.85 } as const;

export async function startPolledEdge(bench: Bench): Promise<PolledEdge> {
  const nats = await startNats(bench);
  const content = snapshotContent({ environments: 1, flagsPerEnvironment: flags });
  await writeSnapshot(nats.url, content);
  const core = bench.cores?.server;
  const edge = await startEdge(bench, { natsUrl: nats.url, core });
  await awaitReady(edge);
  const headers = { Authorization: `Bearer ${content.key}` };
  const whole = { method: "GET", path: "/api/v1/sdk/flags", headers };
  const etag = headerOf(await captureAnswer(edge.url, whole), "etag");
  const notModified = { ...whole, headers: { ...headers, "If-None-Match": etag } };
  return {
    edge,
    natsVersion: nats.version,
    polls: [
      { name: "200", status: 200, plans: [whole], goal, memoryGoal },
      { name: "304", status: 304, plans: [notModified], goal },
    ],
  };
}
