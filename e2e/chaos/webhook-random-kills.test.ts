import { randomInt } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { awaitAllAttempted } from "../src/checks/webhook-agreement.ts";
import { beginWebhookStory } from "../src/stories/webhook-story.ts";
import { killOne, startReadyDispatcher } from "../src/system/replicas.ts";
import { type System, startSystem } from "../src/system/system.ts";

const flags = 10;
const times = 20;
const pauseMs = 250;
/** A target takes up to so long, so that there is mostly something under way when a process dies. */
const maxAnswerMs = 80;
/** Events in a killed dispatcher's hands come again after five seconds, several times in a row at worst. */
const settleWithinMs = 60_000;

describe("given two dispatchers that are killed and started again at random", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({
      managements: 1,
      dispatchers: 2,
      edges: 0,
      // A broken connection is tried again soon; as often as there may be kills.
      settings: () => ({ "webhook-dispatcher": { WEBHOOK_RETRY_DELAYS: "100ms,100ms,1s" } }),
    });
  });
  afterAll(() => system?.close());

  /** Kills and starts, with up to two in service, until the changes are made. */
  async function disturb(until: Promise<void>): Promise<string[]> {
    const done: string[] = [];
    const starting: Promise<unknown>[] = [];
    system.endsWithSystem(async () => void (await Promise.allSettled(starting)));
    let ended = false;
    void until
      .finally(() => {
        ended = true;
      })
      .catch(() => undefined);
    while (!ended) {
      await delay(randomInt(50, 500));
      if (system.dispatchers.length === 0) continue;
      const killed = await killOne(system.dispatchers);
      done.push(`${killed.pid} killed, ${system.dispatchers.length} left`);
      starting.push(system.startDispatcher());
    }
    await Promise.all(starting);
    await until;
    return done;
  }

  it("delivers each of 200 changes, and twice only what died between claiming and recording", async () => {
    const story = await beginWebhookStory(system, { name: "At random", flags });
    story.receiver.answer(() => ({
      kind: "answer",
      status: 200,
      delayMs: randomInt(maxAnswerMs),
    }));
    const disturbances = await disturb(story.flip({ times, pauseMs }).ended);
    await awaitAllAttempted(system.sql, system.nats.url, settleWithinMs);
    // They end what is under way; so what is still claimed afterwards is of those that were killed.
    await Promise.all(system.dispatchers.splice(0).map((one) => one.stop()));
    const orphans = await story.endClaims();
    await startReadyDispatcher(system);
    const faults = await story.faults({ withinMs: settleWithinMs });
    const deliveries = (await story.deliveries()).length;
    expect({ disturbances, orphans, deliveries, faults }).toEqual({
      disturbances,
      orphans,
      deliveries: flags * times,
      faults: [],
    });
  });
});
