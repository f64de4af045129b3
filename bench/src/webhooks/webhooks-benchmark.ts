import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import type { Bench, Benchmark } from "../benchmark.ts";
import { listen } from "../processes/answer-parent.ts";
import { startChild } from "../processes/child-process.ts";
import { cpuMs } from "../processes/process-usage.ts";
import { count as amount, below, number, ratioAtLeast } from "../reporting.ts";
import { alternate } from "../statistics.ts";
import { createTenant, togglesInTurn } from "../system/tenant.ts";
import { sendBacklog } from "./backlog.ts";
import type { PostsApi, PostsClient } from "./bare-posts-process.ts";
import {
  createWebhook,
  createWebhooks,
  startTargets,
  startWebhookSystem,
  type WebhookSystem,
} from "./webhook-system.ts";

export const webhooksBenchmark: Benchmark = {
  name: "webhooks",
  pinned: false,
  summary: "a backlog of 10,000 deliveries, and 200 targets that hang",
  method:
    "**Backlog.** One dispatcher sends 10,000 deliveries of 40 webhooks, which become due at the same moment. The baselines send the same requests with bare `got` and bare `node:http`, without a database. The backlog is sent again while 200 other webhooks have due deliveries whose targets never respond.\n\n" +
    "**Single changes.** The time from the event's timestamp, before its commit, to the request at the receiver. The baseline is the time of the `PATCH`.",
  run,
};

const size = { deliveries: 10_000, targets: 40, hanging: 200, rounds: 3, changes: 200 };
const quickSize = { deliveries: 200, targets: 4, hanging: 10, rounds: 1, changes: 10 };

async function run(bench: Bench): Promise<void> {
  const system = await startWebhookSystem(bench);
  await measureBacklogs(bench, system);
  await measureLightLoad(bench, system);
}

async function measureBacklogs(bench: Bench, system: WebhookSystem): Promise<void> {
  const { deliveries, targets, hanging, rounds } = bench.quick ? quickSize : size;
  bench.say(`${targets} webhooks, and ${hanging} with hanging targets`);
  const urls = await system.targets.call.start(targets);
  const webhookIds = await createWebhooks(system, { urls, perOrganization: 4 });
  // Their requests have their own process, so that they do not add to the costs of the others.
  const silent = await startTargets(bench);
  const hangingIds = await createWebhooks(system, {
    urls: await silent.call.startHanging(hanging),
    perOrganization: 10,
  });
  const posts = await startChild<PostsApi>(bench, {
    program: "webhooks/bare-posts-process.ts",
    core: "load",
  });

  /** Sends the same requests to the same targets without the dispatcher. */
  async function sendBare(client: PostsClient, count: number) {
    await system.targets.call.expect(count);
    const beforeMs = cpuMs(posts.pid);
    const tookMs = await posts.call.post({ client, urls, count });
    const usedMs = cpuMs(posts.pid) - beforeMs;
    await system.targets.call.all();
    return { perSecond: (count / tookMs) * 1e3, cpuMicroseconds: (usedMs * 1e3) / count };
  }

  const bad = { webhookIds: hangingIds, targets: silent };
  const sides = (count: number) => ({
    alone: () => sendBacklog(system, { webhookIds, deliveries: count }),
    beside: () => sendBacklog(system, { webhookIds, deliveries: count, hanging: bad }),
    got: () => sendBare("got", count),
    node: () => sendBare("node:http", count),
  });
  // Warms up with a tenth.
  if (!bench.quick) await alternate(bench, 1, sides(deliveries / 10));
  const { alone, beside, got, node } = await alternate(bench, rounds, sides(deliveries));
  const rate = "deliveries per second";
  const whileHanging = `${rate} while ${hanging} targets hang vs. none`;
  const cpu = "CPU of the dispatcher per delivery vs. bare got";
  bench.compare(`${rate} vs. bare got`, "/s", [alone, got], "perSecond");
  bench.compare(`${rate} vs. bare node:http`, "/s", [alone, node], "perSecond");
  bench.compare(cpu, "µs", [alone, got], "cpuMicroseconds");
  bench.compare(whileHanging, "/s", [beside, alone], "perSecond", ratioAtLeast(0.9));
  const { cpuMicroseconds, postgresMicroseconds, receiverMicroseconds } = alone;
  bench.note`${amount(deliveries)} deliveries to ${targets} webhooks. CPU per delivery: ${number(cpuMicroseconds)} µs in the dispatcher, ${number(postgresMicroseconds)} µs in PostgreSQL and ${number(receiverMicroseconds)} µs in the receiver.`;
}

/** Toggles a flag; each change waits for the delivery of the previous one. */
async function measureLightLoad(bench: Bench, system: WebhookSystem): Promise<void> {
  let arrived = Promise.withResolvers<number>();
  const server = createServer((request, response) => {
    const nowMs = Date.now();
    void text(request).then((body) => {
      const { timestamp } = JSON.parse(body) as { timestamp: string };
      response.end();
      arrived.resolve(nowMs - Date.parse(timestamp));
    });
  });
  bench.afterwards(() => server.close().closeAllConnections());
  const tenant = await createTenant(system.management.url, 1);
  await createWebhook(system, tenant, `${await listen(server)}/`);
  const toggle = togglesInTurn(system.management.url, tenant);
  /** From the event's timestamp, which is before its commit, to the request at the receiver. */
  const deliveredMs: number[] = [];
  const patchedMs: number[] = [];
  const { changes } = bench.quick ? quickSize : size;
  for (let count = 0; count < changes; count += 1) {
    arrived = Promise.withResolvers();
    const { sentMs, answeredMs } = await toggle();
    patchedMs.push(answeredMs - sentMs);
    deliveredMs.push(await arrived.promise);
  }
  bench.latencies("single changes, event to receiver vs. PATCH: ", deliveredMs, {
    of: ["median", "p99", "maximum"],
    baselineMs: patchedMs,
    goals: { median: below(20), p99: below(100) },
  });
}
