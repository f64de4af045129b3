import { watchCpu } from "../system/services.ts";
import { createTenant, togglesInTurn } from "../system/tenant.ts";
import { nowMs } from "../time.ts";
import { createWebhook, startWebhookSystem } from "../webhooks/webhook-system.ts";
import { growthBenchmark } from "./curve.ts";

/** Deliveries of one measurement, over several changes. */
const deliveries = 500;

export const webhooksCurve = growthBenchmark({
  name: "webhooks",
  summary: "cost of each delivery of an event, by webhooks of the project",
  method: "One flag is toggled; the next time after all deliveries of the event have arrived.",
  sizes: { of: "webhooks", full: [10, 100], quick: [2, 4], rounds: 3 },
  costs: {
    time: ["PATCH sent to last delivery, per delivery", "ms"],
    cpu: ["CPU of the dispatcher per delivery", "ms"],
    database: ["CPU of PostgreSQL per delivery", "ms"],
  },
  note: "A project can have 100 webhooks.",
  async prepare(bench, webhooks) {
    const system = await startWebhookSystem(bench);
    const { call } = system.targets;
    const tenant = await createTenant(system.management.url, 1);
    const urls = await call.start(webhooks);
    await Promise.all(urls.map((url) => createWebhook(system, tenant, url)));
    const toggle = togglesInTurn(system.management.url, tenant);
    const changes = bench.quick ? 2 : deliveries / webhooks;
    async function change(): Promise<number> {
      await call.expect(webhooks);
      const { sentMs } = await toggle();
      await call.all();
      return nowMs() - sentMs;
    }
    return async () => {
      await change();
      const used = await watchCpu(system.dispatcher, system.postgres);
      let tookMs = 0;
      for (let count = 0; count < changes; count += 1) tookMs += await change();
      const { serviceMs, databaseMs } = await used();
      const perDelivery = (usedMs: number) => usedMs / (changes * webhooks);
      return {
        time: perDelivery(tookMs),
        cpu: perDelivery(serviceMs),
        database: perDelivery(databaseMs),
      };
    };
  },
});
