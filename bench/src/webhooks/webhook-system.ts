import type { Sql } from "@halyard/postgres";
import postgres from "postgres";
import type { Bench } from "../benchmark.ts";
import { type Nats, type Postgres, startNats, startPostgres } from "../system/backends.ts";
import { awaitReady, type Service, startDispatcher, startManagement } from "../system/services.ts";
import { createTenant, type Tenant } from "../system/tenant.ts";

/** All services of webhooks, without any webhooks. */
export type WebhookSystem = {
  nats: Nats;
  postgres: Postgres;
  management: Service;
  dispatcher: Service;
  /** Connects as a superuser to the dispatcher's schema. */
  admin: Sql;
};

export async function startWebhookSystem(bench: Bench): Promise<WebhookSystem> {
  const [nats, database] = await Promise.all([startNats(bench), startPostgres(bench)]);
  const backends = { postgres: database, nats, core: undefined };
  const [management, dispatcher] = await Promise.all([
    startManagement(bench, backends),
    startDispatcher(bench, backends),
  ]);
  await awaitReady(dispatcher);
  const admin = postgres(database.adminUrl, {
    max: 1,
    onnotice: () => undefined,
    connection: { search_path: "webhooks" },
  });
  bench.afterwards(() => admin.end());
  return { nats, postgres: database, management, dispatcher, admin: admin as unknown as Sql };
}

/**
 * Creates a signed webhook for each URL through the API, with a number of them in each organization.
 */
export async function createWebhooks(
  system: WebhookSystem,
  { urls, perOrganization }: { urls: readonly string[]; perOrganization: number },
): Promise<string[]> {
  const shares = Array.from({ length: Math.ceil(urls.length / perOrganization) }, (_, index) =>
    urls.slice(index * perOrganization, (index + 1) * perOrganization),
  );
  const ids = await Promise.all(
    shares.map(async (share) => {
      const tenant = await createTenant(system.management.url, 0);
      return Promise.all(share.map((url) => createWebhook(system, { tenant, url })));
    }),
  );
  return ids.flat();
}

const timeoutMs = 10_000;

/** Retries until the dispatcher knows the new key. */
export async function createWebhook(
  { dispatcher }: WebhookSystem,
  { tenant, url }: { tenant: Tenant; url: string },
): Promise<string> {
  const deadlineMs = performance.now() + timeoutMs;
  for (;;) {
    const response = await fetch(`${dispatcher.url}/api/v1/projects/${tenant.projectId}/webhooks`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${tenant.serverKey}`,
        "content-type": "application/json",
      },
      body: JSON.stringify({
        name: url,
        url,
        events: ["flag.toggled"],
        secret: "a secret of the benchmarks",
      }),
    });
    if (response.status === 201) return ((await response.json()) as { id: string }).id;
    const text = await response.text();
    if (response.status !== 401 || performance.now() > deadlineMs)
      throw new Error(`POST webhooks: ${response.status} ${text}`);
  }
}
