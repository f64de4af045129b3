import type { Bench } from "../benchmark.ts";
import { nowMs } from "../clock.ts";
import type { RequestPlan } from "../http/load.ts";
import { cpuMsOfTree } from "../processes/process-usage.ts";
import { createTenant } from "../system/tenant.ts";
import { timeRequest, toggles } from "../system/toggles.ts";
import { startReceiver } from "../webhooks/receivers.ts";
import { createWebhook, startWebhookSystem } from "../webhooks/webhook-system.ts";
import type { Curve, Side } from "./curve.ts";
import { serviceCpuMs } from "./service-cpu.ts";

const time = "PATCH sent to last delivery, per delivery";
const cpu = "CPU of the dispatcher per delivery";
const databaseCpu = "CPU of PostgreSQL per delivery";
/** Deliveries of one measurement, over several changes. */
const deliveries = 500;

export const webhooksCurve: Curve = {
  name: "webhooks",
  summary: "cost of each delivery of an event, by webhooks of the project",
  method: "One flag is toggled; the next time after all deliveries of the event have arrived.",
  of: "webhooks",
  sizes: [10, 100],
  quickSizes: [2, 4],
  rounds: 3,
  costs: [
    { what: time, unit: "ms" },
    { what: cpu, unit: "ms" },
    { what: databaseCpu, unit: "ms" },
  ],
  notes: ["A project can have 100 webhooks."],
  open: async (bench) => (webhooks) => prepare(bench, webhooks),
};

async function prepare(bench: Bench, webhooks: number): Promise<Side> {
  const system = await startWebhookSystem(bench);
  const { nats, postgres, management, dispatcher } = system;
  const receiver = await startReceiver(bench, webhooks);
  const tenant = await createTenant(management.url, 1);
  await Promise.all(receiver.urls.map((url) => createWebhook(system, { tenant, url })));
  const [on, off] = toggles(tenant) as [RequestPlan, RequestPlan];
  const changes = bench.quick ? 2 : deliveries / webhooks;
  let made = 0;
  async function change(): Promise<number> {
    made += 1;
    const arrived = await receiver.expect(webhooks);
    const sentMs = nowMs();
    await timeRequest(management.url, made % 2 === 1 ? on : off);
    await arrived.all();
    return nowMs() - sentMs;
  }
  return {
    nats,
    postgres,
    async measure() {
      await change();
      const beforeMs = await serviceCpuMs(dispatcher);
      const databaseBeforeMs = cpuMsOfTree(postgres.pid);
      let tookMs = 0;
      for (let count = 0; count < changes; count += 1) tookMs += await change();
      const perDelivery = (usedMs: number) => usedMs / (changes * webhooks);
      return {
        [time]: perDelivery(tookMs),
        [cpu]: perDelivery((await serviceCpuMs(dispatcher)) - beforeMs),
        [databaseCpu]: perDelivery(cpuMsOfTree(postgres.pid) - databaseBeforeMs),
      };
    },
  };
}
