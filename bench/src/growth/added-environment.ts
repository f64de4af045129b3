import { setTimeout as delay } from "node:timers/promises";
import type { Bench } from "../benchmark.ts";
import { nowMs } from "../clock.ts";
import { awaitReady, startEdge } from "../system/services.ts";
import { create, createTenant } from "../system/tenant.ts";
import { toggleSteadily } from "../system/toggles.ts";
import type { Curve, Side } from "./curve.ts";
import { insertFlags } from "./fill-tables.ts";
import { startFilledManagement } from "./filled-management.ts";

const created = "POST to 201";
const complete = "POST to all flags on an edge";
const slowest = "slowest concurrent PATCH of another organization";
const pauseMs = 50;
const timeoutMs = 60_000;

export const addedEnvironmentCurve: Curve = {
  name: "added-environment",
  summary: "creation of an environment, by flags of the project",
  method:
    "An environment and a client key are created, and an edge is polled until it returns all flags of the project. Meanwhile another organization toggles a flag, one request after the other.",
  of: "flags",
  sizes: [1_000, 20_000],
  quickSizes: [10, 50],
  rounds: 3,
  costs: [
    { what: created, unit: "ms" },
    { what: complete, unit: "ms" },
    { what: slowest, unit: "ms" },
  ],
  open: async (bench) => (flags) => prepare(bench, flags),
};

async function prepare(bench: Bench, flags: number): Promise<Side> {
  const { nats, postgres, management, tenant } = await startFilledManagement(bench, {
    flags: 0,
    fill: (sql, tenant) => insertFlags(sql, tenant, flags),
  });
  const other = await createTenant(management.url, 1);
  const edge = await startEdge(bench, { natsUrl: nats.url, core: undefined });
  await awaitReady(edge);
  const path = `projects/${tenant.projectId}/environments`;
  let added = 0;
  return {
    nats,
    postgres,
    async measure() {
      added += 1;
      const others = toggleSteadily(management.url, other);
      const beganMs = nowMs();
      const environment = await create(management.url, { path, body: { name: `added-${added}` } });
      const createdMs = nowMs() - beganMs;
      const { key = "" } = await create(management.url, {
        path: `${path}/${environment.id}/keys`,
        body: { kind: "client", name: "added", user_id: tenant.userId },
      });
      while ((await countFlags(edge.url, key)) < flags) {
        if (nowMs() - beganMs > timeoutMs)
          throw new Error("the environment was not completed in time");
        await delay(pauseMs);
      }
      const completeMs = nowMs() - beganMs;
      return { [created]: createdMs, [complete]: completeMs, [slowest]: await others.stop() };
    },
  };
}

/** Returns no flags if the edge has not received the key yet. */
async function countFlags(edgeUrl: string, key: string): Promise<number> {
  const response = await fetch(`${edgeUrl}/api/v1/sdk/flags`, {
    headers: { authorization: `Bearer ${key}` },
  });
  const { flags = {} } = (await response.json()) as { flags?: Record<string, boolean> };
  return Object.keys(flags).length;
}
