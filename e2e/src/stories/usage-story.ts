import { evaluationsStream, usageStream } from "@halyard/contracts";
import { eventually } from "@halyard/testing";
import { forgetMessageIdsAtOnce } from "../system/disturbances.ts";
import type { Edge, System } from "../system/system.ts";
import { createTenant, must, operatorToken, type Tenant } from "../system/tenancy.ts";
import { type CreatedFlag, createFlags } from "../traffic/changes.ts";
import {
  askOnce,
  everyKind,
  flagsPath,
  type Kind,
  type Sent,
  sendTraffic,
  type Traffic,
} from "../traffic/usage-traffic.ts";

/**
 * One scenario of usage in a running system: a tenant with flags, which every edge and every metering has loaded, and
 * applications that send requests.
 *
 * The broker expires message ids almost immediately, so that every repetition reaches its consumer.
 */
type UsageStory = {
  tenant: Tenant;
  flags: readonly CreatedFlag[];
  kinds: readonly Kind[];
  /** Requests that were sent before the scenario began. */
  before: readonly Sent[];
  ask(options?: { pauseMs?: number; kinds?: readonly Kind[]; alsoExpected?: number[] }): Traffic;
  changePlan(plan: string): Promise<void>;
};

const flagKeys = ["checkout", "search", "dark-mode"];
const defaultPauseMs = 5;

export async function beginUsageStory(
  system: System,
  options: { name: string; plan?: string },
): Promise<UsageStory> {
  const [management] = system.managements;
  const [edge] = system.edges;
  if (management === undefined || edge === undefined)
    throw new Error("a usage story needs a management process and an edge");
  const { plan = "unlimited" } = options;
  const tenant = await createTenant(management.url, { name: options.name, plan });
  const flags = await createFlags(management.url, tenant.serverKey, flagKeys);
  await eventually(async () => {
    for (const { name } of [usageStream, evaluationsStream])
      await forgetMessageIdsAtOnce(system.nats.url, name);
    return true;
  });
  const before = await awaitKnown(system.edges, tenant, flags);
  const { kinds, sent } = await everyKind(edge, tenant, flags);
  return {
    tenant,
    flags,
    kinds,
    before: [...before, ...sent],
    ask({ pauseMs = defaultPauseMs, ...more } = {}) {
      const { edges } = system;
      const traffic = sendTraffic({ edges, kinds, pauseMs, ...more });
      system.endsWithSystem(traffic.stop);
      return traffic;
    },
    async changePlan(to) {
      const url = `${management.url}/api/v1/organizations/${tenant.organizationId}`;
      await must(url, { method: "PATCH", key: operatorToken, body: { plan: to } });
    },
  };
}

/** Reads flags from each edge until it has loaded them. Returns the requests, because they are counted, too. */
async function awaitKnown(
  edges: readonly Edge[],
  tenant: Tenant,
  flags: readonly CreatedFlag[],
): Promise<Sent[]> {
  const asked: Sent[] = [];
  const ask = async (edge: Edge) => {
    const { sent } = await askOnce({ edge, tenant, flags }, "flags", {
      method: "GET",
      path: flagsPath,
    });
    asked.push(sent);
    return sent.evaluates.length === flags.length;
  };
  for (const edge of edges)
    await eventually(() => ask(edge), { because: `${edge.name} has loaded the flags` });
  return asked;
}
