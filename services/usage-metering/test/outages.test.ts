import { randomUUID } from "node:crypto";
import type { UsageRecorded } from "@halyard/contracts";
import { ensureUsage } from "@halyard/jetstream";
import {
  eventually,
  type ServiceProcess,
  startRestartablePostgres,
  startServiceProcess,
} from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { makeEdge, makeTenant, openMetering, type Tenant } from "./usage-fixture.ts";

/**
 * The counts are exact even if processes and PostgreSQL are killed. Edges send every unacknowledged message again,
 * unchanged.
 */
const processes: ServiceProcess[] = [];

const postgres = await startRestartablePostgres();
const metering = await openMetering({ database: { ...postgres, drop: () => postgres.stop() } });
afterAll(async () => {
  await Promise.all(processes.map((one) => one.kill()));
  await metering.close();
});
await ensureUsage(metering.manager, 1);

async function startProcess(): Promise<ServiceProcess> {
  const started = await startServiceProcess("usage-metering", {
    NATS_URL: metering.natsUrl,
    POSTGRES_URL: postgres.runtimeUrls.usage,
  });
  processes.push(started);
  return started;
}

async function killOne(): Promise<void> {
  await processes.shift()?.kill();
}

/** Returns messages of a few edges, which alternate. */
function messagesOf(tenants: readonly Tenant[], { edges = 5, each = 40 } = {}): UsageRecorded[] {
  const lives = Array.from({ length: edges }, () => makeEdge(randomUUID()));
  return Array.from({ length: each }, () =>
    lives.map((life) =>
      life.message(tenants.map((tenant) => tenant.used({ requests: { flags: 1, evaluate: 2 } }))),
    ),
  ).flat();
}

/** Sends messages in batches, each twice, and calls `disturb` after a third of them. */
async function sendWhile(
  messages: readonly UsageRecorded[],
  disturb: () => Promise<unknown>,
): Promise<void> {
  const batches = Array.from({ length: Math.ceil(messages.length / 5) }, (_, index) =>
    messages.slice(5 * index, 5 * index + 5),
  );
  const send = async (some: typeof batches) => {
    for (const batch of some) await metering.send(...batch, ...batch);
  };
  const third = Math.ceil(batches.length / 3);
  await send(batches.slice(0, third));
  await Promise.all([disturb(), send(batches.slice(third))]);
}

const countedAll = async (tenants: readonly Tenant[], requests: number) => {
  await eventually(
    async () => {
      await metering.admin`select 1`;
      for (const { organizationId } of tenants)
        if ((await metering.countedFor(organizationId)) < requests) return false;
      return true;
    },
    { withinMs: 25_000 },
  );
  await metering.allProcessed();
  for (const { organizationId } of tenants)
    expect(await metering.countedFor(organizationId)).toBe(requests);
};

describe("when processes are killed while counting", () => {
  it("loses nothing and counts nothing twice", async () => {
    await Promise.all([startProcess(), startProcess()]);
    const tenants = [makeTenant(), makeTenant()];
    const messages = messagesOf(tenants);
    await sendWhile(messages, async () => {
      await killOne();
      await startProcess();
    });
    await countedAll(tenants, messages.length * 3);
  });

  it("stops gracefully, and the others continue", async () => {
    const leaving = processes.shift();
    const tenants = [makeTenant()];
    const messages = messagesOf(tenants);
    await sendWhile(messages, async () => leaving?.stop());
    expect(await leaving?.exited).toBe(0);
    await countedAll(tenants, messages.length * 3);
  });
});

describe("when PostgreSQL is killed while processes count", () => {
  it("loses nothing and counts nothing twice, and is not ready meanwhile", async () => {
    const started = await startProcess();
    const ready = async () => (await fetch(`${started.url}/readyz`)).status === 200;
    const tenants = [makeTenant(), makeTenant()];
    const messages = messagesOf(tenants);
    await eventually(ready);
    await sendWhile(messages, async () => {
      await postgres.kill();
      await eventually(async () => !(await ready()));
      await postgres.start();
    });
    await countedAll(tenants, messages.length * 3);
    await eventually(ready);
    await eventually(
      async () =>
        (await metering.quotaOf(tenants[0]?.organizationId ?? ""))?.requests ===
        messages.length * 3,
    );
  });
});
