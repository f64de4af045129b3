import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { Bench } from "../benchmark.ts";
import { createTenant, type Tenant } from "../system/tenant.ts";
import { createWebhook, type WebhookSystem } from "./webhook-system.ts";

/** Latencies of deliveries and of the changes themselves. */
export type Latencies = {
  /** From the event's timestamp, which is before its commit, to the request at the receiver. */
  deliveredMs: readonly number[];
  /** From the `PATCH` to its response. */
  patchedMs: readonly number[];
};

const changes = 200;
const quickChanges = 10;

/** Toggles a flag; each change waits for the delivery of the previous one. */
export async function measureLightLoad(bench: Bench, system: WebhookSystem): Promise<Latencies> {
  const receiver = await listen(bench);
  const tenant = await createTenant(system.management.url, 1);
  await createWebhook(system, { tenant, url: receiver.url });
  const deliveredMs: number[] = [];
  const patchedMs: number[] = [];
  for (let number = 0; number < (bench.quick ? quickChanges : changes); number += 1) {
    const arrived = receiver.next();
    const sentMs = performance.now();
    await patch(system, tenant, number % 2 === 0);
    patchedMs.push(performance.now() - sentMs);
    deliveredMs.push(await arrived);
  }
  return { deliveredMs, patchedMs };
}

/** Starts a receiver in this process. */
async function listen(bench: Bench): Promise<{ url: string; next(): Promise<number> }> {
  let arrived = Promise.withResolvers<number>();
  const server = createServer((request, response) => {
    const nowMs = Date.now();
    void text(request).then((body) => {
      const { timestamp } = JSON.parse(body) as { timestamp: string };
      response.end();
      arrived.resolve(nowMs - Date.parse(timestamp));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  bench.afterwards(async () => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    next() {
      arrived = Promise.withResolvers();
      return arrived.promise;
    },
  };
}

async function patch({ management }: WebhookSystem, tenant: Tenant, enabled: boolean) {
  const response = await fetch(`${management.url}/api/v1/flags/${tenant.flagIds[0]}`, {
    method: "PATCH",
    headers: {
      authorization: `Bearer ${tenant.serverKey}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ enabled }),
  });
  const body = await response.text();
  if (response.status !== 200) throw new Error(`PATCH: ${response.status} ${body}`);
}
