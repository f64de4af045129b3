import { setTimeout as delay } from "node:timers/promises";
import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { beginWebhookStory } from "../src/stories/webhook-story.ts";
import { type Dispatcher, type System, startSystem } from "../src/system/system.ts";
import type { CreatedFlag } from "../src/traffic/changes.ts";

const flags = 4;
const times = 20;
const pauseMs = 50;
/** Number of deliveries before PostgreSQL is killed. */
const part = 20;
/** Long enough to reveal retries whose interval grows too much. */
const outageMs = 1_000;

describe("given PostgreSQL that fails while webhooks are sent", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({ managements: 1, dispatchers: 2, edges: 0, postgres: "own" });
  });
  afterAll(() => system?.close());

  /**
   * Lets commits succeed without a response, because they wait for a standby that does not exist. PostgreSQL applies
   * the setting with a delay, so this commits repeatedly until one commit waits. Returns the function that ends the
   * state.
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
    (await unansweredCommits()).filter(({ user }) => user === "webhooks_service");

  it("loses nothing when it is killed, and does not repeat a delivery that it could not record in time", async () => {
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

  it("records an attempt once when the response to its commit was lost", async () => {
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
    // A dispatcher that received no response records the attempt again, and handles the existing record.
    await eventually(async () => (await countDelivered(system.dispatchers)) === before + 1);
    expect(await story.faults()).toEqual([]);
    expect((await story.deliveryThatIs("delivered")).attemptsMade).toBe(1);
  });
});

/** Returns the number of deliveries that the processes have recorded as delivered, by their metrics. */
async function countDelivered(dispatchers: readonly Dispatcher[]): Promise<number> {
  const texts = await Promise.all(
    dispatchers.map(async ({ metricsUrl }) => (await fetch(`${metricsUrl}/metrics`)).text()),
  );
  const line = /^halyard_webhook_deliveries_total\{.*status="delivered".*\} (\d+)$/m;
  return texts.reduce((sum, text) => sum + Number(line.exec(text)?.[1] ?? 0), 0);
}
