import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { beginWebhookStory } from "../src/stories/webhook-story.ts";
import { type System, startSystem } from "../src/system/system.ts";

const flags = 4;
const times = 20;
const pauseMs = 50;
/** Number of changes before NATS is killed, and again before it is restarted. */
const part = 20;

describe("given NATS that is killed while webhooks are sent", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({ managements: 1, dispatchers: 2, edges: 0 });
  });
  afterAll(() => system?.close());

  it("delivers every change from before, during and after the outage once", async () => {
    const story = await beginWebhookStory(system, { name: "NATS killed", flags });
    const changes = story.flip({ times, pauseMs });
    await eventually(() => story.receiver.requests.length >= part, { withinMs: 20_000 });
    await system.nats.kill();
    const before = changes.answered();
    await eventually(() => changes.answered() >= before + part, { withinMs: 20_000 });
    await system.nats.start();
    await changes.ended;
    expect(await story.faults()).toEqual([]);
    expect(await story.deliveries()).toHaveLength(flags * times);
  });
});
