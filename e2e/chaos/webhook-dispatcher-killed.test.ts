import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { beginWebhookStory } from "../src/stories/webhook-story.ts";
import { awaitLockWaiters, lockTable } from "../src/system/disturbances.ts";
import { killOne, startReadyDispatcher } from "../src/system/replicas.ts";
import { type System, startSystem } from "../src/system/system.ts";
import type { CreatedFlag } from "../src/traffic/changes.ts";

/** Long enough to lock a table before the retry, and waited for by nobody else. */
const retryDelay = "3s";

describe("given a dispatcher that is killed with a delivery in its hands", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({
      managements: 1,
      dispatchers: 1,
      edges: 0,
      settings: () => ({ "webhook-dispatcher": { WEBHOOK_RETRY_DELAYS: retryDelay } }),
    });
  });
  afterAll(() => system?.close());

  const kill = () => killOne(system.dispatchers);
  const replace = () => startReadyDispatcher(system);

  async function begin(name: string) {
    const story = await beginWebhookStory(system, { name });
    const [flag] = story.flags as [CreatedFlag];
    return { story, flag };
  }

  it("has the next one send what it was about to claim", async () => {
    const { story, flag } = await begin("Claiming");
    story.receiver.answer({ kind: "answer", status: 503 });
    await story.switchByHand(flag, true);
    const delivery = await story.deliveryThatIs("retrying");
    story.receiver.reset();
    const unlock = await lockTable(system.sql, "webhooks.deliveries", "share");
    await awaitLockWaiters(system.sql, "webhooks.deliveries");
    await kill();
    // Whoever waits goes on when the table is free: the claim may be made, and nobody is there to send.
    await unlock();
    await story.endClaims();
    await replace();
    expect(await story.faults()).toEqual([]);
    expect(story.arrived(delivery)).toHaveLength(1);
  });

  it("has the next one send once more what was sent and not answered", async () => {
    const { story, flag } = await begin("Sent");
    story.receiver.answer({ kind: "hang" });
    await story.switchByHand(flag, true);
    const delivery = await story.deliveryThatIs("delivering");
    await eventually(() => story.receiver.hanging() === 1);
    await kill();
    story.receiver.answer({ kind: "answer", status: 200 });
    expect(await story.endClaims()).toBe(1);
    await replace();
    expect(await story.faults()).toEqual([]);
    expect(story.arrived(delivery)).toHaveLength(2);
  });
});
