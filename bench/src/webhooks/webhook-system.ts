import type { Bench } from "../benchmark.ts";
import { type Child, startChild } from "../processes/child-process.ts";
import { openTables, startBackends } from "../system/backends.ts";
import { callApi } from "../system/call-api.ts";
import { startManagement, startService } from "../system/services.ts";
import { createTenant, type Tenant } from "../system/tenant.ts";
import { until } from "../time.ts";
import type { TargetsApi } from "./targets-process.ts";

export type Targets = Child<TargetsApi>;
export type WebhookSystem = Awaited<ReturnType<typeof startWebhookSystem>>;

/** Starts all services of webhooks, without any webhooks. */
export async function startWebhookSystem(bench: Bench) {
  const backends = await startBackends(bench);
  const [management, dispatcher, targets] = await Promise.all([
    startManagement(bench, backends),
    startService(bench, "webhook-dispatcher", backends),
    startTargets(bench),
  ]);
  const admin = openTables(bench, backends.postgres, "webhooks");
  return { ...backends, management, dispatcher, admin, targets };
}

export const startTargets = (bench: Bench): Promise<Targets> =>
  startChild(bench, { program: "webhooks/targets-process.ts", core: "load" });

/** Creates a signed webhook for each URL through the API, with a number of them in each organization. */
export async function createWebhooks(
  system: WebhookSystem,
  { urls, perOrganization }: { urls: readonly string[]; perOrganization: number },
): Promise<string[]> {
  const shares = Array.from({ length: Math.ceil(urls.length / perOrganization) }, (_, index) =>
    urls.slice(index * perOrganization, (index + 1) * perOrganization),
  );
  const ids = shares.map(async (share) => {
    const tenant = await createTenant(system.management.url, 0);
    return Promise.all(share.map((url) => createWebhook(system, tenant, url)));
  });
  return (await Promise.all(ids)).flat();
}

/** Retries until the dispatcher knows the new key. */
export async function createWebhook(
  { dispatcher }: WebhookSystem,
  { projectId, serverKey: token }: Tenant,
  url: string,
): Promise<string> {
  const body = { name: url, url, events: ["flag.toggled"], secret: "a secret of the benchmarks" };
  const path = `${dispatcher.url}/api/v1/projects/${projectId}/webhooks`;
  let id = "";
  await until("the dispatcher creates a webhook", async () => {
    const request = { method: "POST", token, body, status: 201 };
    ({ id } = await callApi<{ id: string }>(path, request));
    return true;
  });
  return id;
}
