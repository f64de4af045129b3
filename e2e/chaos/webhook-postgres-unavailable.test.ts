import { setTimeout as delay } from "node:timers/promises";
import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { beginWebhookStory } from "../src/stories/webhook-story.ts";
import { type Dispatcher, type System, startSystem } from "../src/system/system.ts";
import type { CreatedFlag } from "../src/traffic/changes.ts";

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

  /**
   * Has commits wait for a copy that nobody makes: they are made, and nobody is told of it. PostgreSQL
   * takes a setting over in its own time, so commits of ours go on until one of them waits. Answers how
   * to have them answered again.
   */
  async function keepCommitsUnanswered(): Promise<() => Promise<void>> {
    const ours = await system.sql.reserve();
    const [self] = await ours<[{ pid: number }]>`select pg_backend_pid() as pid`;
    let answered = false;
    const commitOnAndOn = async () => {
      while (!answered) await ours`select pg_logical_emit_message(true, 'test', '')`;
      ours.release();
    };
    await system.sql`alter system set synchronous_standby_names = 'nobody'`;
    await system.sql`select pg_reload_conf()`;
    const committing = commitOnAndOn();
    await eventually(async () => (await unansweredCommits()).some(({ pid }) => pid === self.pid));
    return async () => {
      answered = true;
      await system.sql`alter system reset synchronous_standby_names`;
      await system.sql`select pg_reload_conf()`;
      await committing;
    };
  }

  const unansweredCommits = () => system.sql<{ pid: number; user: string }[]>`
    select pid, usename as user from pg_stat_activity where wait_event = 'SyncRep'`;

  const unansweredDispatchers = async () =>
    (await unansweredCommits()).filter(({ user }) => user === "webhooks_runtime");

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
    const answerCommits = await keepCommitsUnanswered();
    release.resolve();
    await eventually(async () => (await unansweredDispatchers()).length > 0);
    for (const { pid } of await unansweredDispatchers())
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
