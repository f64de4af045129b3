import { setTimeout as delay } from "node:timers/promises";
import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { CreatedFlag } from "../../src/changes.ts";
import { type Dispatcher, type System, startSystem } from "../../src/system.ts";
import { beginWebhookStory } from "../../src/webhook-story.ts";

const flags = 4;
const times = 20;
const pauseMs = 50;
/** So many deliveries before PostgreSQL goes. */
const part = 20;
/** Long enough that whoever tries again more and more rarely would be noticed afterwards. */
const outageMs = 1_000;

describe("given PostgreSQL that fails while changes are told", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({ managements: 1, dispatchers: 2, edges: 0, postgres: "own" });
  });
  afterAll(() => system?.close());

  /** Has commits wait for a copy that nobody makes: they are made, and nobody is told of it. */
  async function keepCommitsUnanswered(): Promise<void> {
    await system.sql`alter system set synchronous_standby_names = 'nobody'`;
    await system.sql`select pg_reload_conf()`;
  }

  async function answerCommits(): Promise<void> {
    await system.sql`alter system reset synchronous_standby_names`;
    await system.sql`select pg_reload_conf()`;
  }

  const commitsUnanswered = () => system.sql<{ pid: number }[]>`
    select pid from pg_stat_activity
    where usename = 'webhooks_runtime' and wait_event = 'SyncRep'`;

  it("loses nothing when it is killed, and sends nothing again that it could not record meanwhile", async () => {
    const story = await beginWebhookStory(system, { name: "PostgreSQL killed", flags });
    const changes = story.flip({ times, pauseMs });
    await eventually(() => story.receiver.requests.length >= part, { withinMs: 20_000 });
    const release = Promise.withResolvers<void>();
    story.receiver.answer({ kind: "answer", status: 200, after: release.promise });
    const before = story.receiver.requests.length;
    await eventually(() => story.receiver.requests.length >= before + flags);
    await system.postgres?.kill();
    release.resolve();
    await delay(outageMs);
    await system.postgres?.start();
    await changes.ended;
    expect(await story.faults()).toEqual([]);
    expect(await story.deliveries()).toHaveLength(flags * times);
  });

  it("keeps an attempt once when the answer to its recording was lost", async () => {
    const story = await beginWebhookStory(system, { name: "Answer lost" });
    const before = await countDelivered(system.dispatchers);
    const [flag] = story.flags as [CreatedFlag];
    const release = Promise.withResolvers<void>();
    story.receiver.answer({ kind: "answer", status: 200, after: release.promise });
    await story.switchByHand(flag, true);
    await story.deliveryThatIs("delivering");
    await eventually(() => story.receiver.requests.length === 1);
    await keepCommitsUnanswered();
    release.resolve();
    await eventually(async () => (await commitsUnanswered()).length > 0);
    for (const { pid } of await commitsUnanswered())
      await system.sql`select pg_terminate_backend(${pid})`;
    await answerCommits();
    // Whoever was not answered asks again, and survives what it finds.
    await eventually(async () => (await countDelivered(system.dispatchers)) === before + 1);
    expect(await story.faults()).toEqual([]);
    expect((await story.deliveryThatIs("delivered")).attemptsMade).toBe(1);
  });
});

/** How many deliveries the processes have recorded as delivered, by their own count. */
async function countDelivered(dispatchers: readonly Dispatcher[]): Promise<number> {
  const texts = await Promise.all(
    dispatchers.map(async ({ metricsUrl }) => (await fetch(`${metricsUrl}/metrics`)).text()),
  );
  const line = /^halyard_webhook_deliveries_total\{.*status="delivered".*\} (\d+)$/m;
  return texts.reduce((sum, text) => sum + Number(line.exec(text)?.[1] ?? 0), 0);
}
