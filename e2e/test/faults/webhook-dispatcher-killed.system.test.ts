import { eventually } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { beginWebhookStory } from "../../src/stories/webhook-story.ts";
import { awaitLockWaiters, holdRow, lockTable } from "../../src/system/disturbances.ts";
import { killOne, startReadyDispatcher } from "../../src/system/replicas.ts";
import { startSystem } from "../../src/system/system.ts";
import type { CreatedFlag } from "../../src/traffic/changes.ts";

/** Long enough to lock a table before the retry. No test waits for the full delay. */
const retryDelay = "3s";

const system = await startSystem({
  managements: 1,
  dispatchers: 1,
  edges: 0,
  settings: () => ({ "webhook-dispatcher": { WEBHOOK_RETRY_DELAYS: retryDelay } }),
});
afterAll(() => system.close());

describe("given a dispatcher that is killed while it handles a delivery", () => {
  const kill = () => killOne(system.dispatchers);
  const replace = () => startReadyDispatcher(system);

  async function begin(name: string) {
    const story = await beginWebhookStory(system, { name });
    const [flag] = story.flags as [CreatedFlag];
    return { story, flag };
  }

  it("creates the deliveries of events that were read in the next process, once in both cases", async () => {
    const { story, flag } = await begin("Read");
    const heldWebhook = await holdRow(system.sql, "webhooks.webhooks", story.webhookId);
    await story.switchByHand(flag, true);
    await heldWebhook.awaitWaiters();
    await kill();
    await heldWebhook.endWaiters();
    await heldWebhook.release();
    expect(await story.deliveries()).toEqual([]);

    const { gate } = await replace();
    gate.shutBefore("+ACK");
    await story.switchByHand(flag, false);
    await eventually(() => gate.holds("+ACK"));
    await kill();
    await gate.close();
    await story.endClaims();
    await replace();
    expect(await story.faults()).toEqual([]);
  });

  it("sends a delivery again in the next process if its response was not recorded", async () => {
    const { story, flag } = await begin("Answered");
    const release = Promise.withResolvers<void>();
    story.receiver.answer({ kind: "answer", status: 200, after: release.promise });
    await story.switchByHand(flag, true);
    const delivery = await story.deliveryThatIs("delivering");
    const heldDelivery = await holdRow(system.sql, "webhooks.deliveries", delivery.id);
    release.resolve();
    await heldDelivery.awaitWaiters();
    await kill();
    await heldDelivery.endWaiters();
    await heldDelivery.release();
    expect(await story.endClaims()).toBe(1);
    await replace();
    expect(await story.faults()).toEqual([]);
    expect(story.arrived(delivery)).toHaveLength(2);
    expect((await story.deliveryThatIs("delivered")).attemptsMade).toBe(1);
  });

  it("sends it from the next process if it was about to be claimed", async () => {
    const { story, flag } = await begin("Claiming");
    story.receiver.answer({ kind: "answer", status: 503 });
    await story.switchByHand(flag, true);
    const delivery = await story.deliveryThatIs("retrying");
    story.receiver.reset();
    const unlock = await lockTable(system.sql, "webhooks.deliveries", "share");
    await awaitLockWaiters(system.sql, "webhooks.deliveries");
    await kill();
    // The waiting statement continues when the lock is released: the claim may be made, but no process sends it.
    await unlock();
    await story.endClaims();
    await replace();
    expect(await story.faults()).toEqual([]);
    expect(story.arrived(delivery)).toHaveLength(1);
  });

  it("sends it again, from the next process, if it got no response", async () => {
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
