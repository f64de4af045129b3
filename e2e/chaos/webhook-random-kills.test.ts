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
/** Maximum response time of a target, so that most kills interrupt a delivery. */
const maxAnswerMs = 80;
/** Events of a killed dispatcher are redelivered after five seconds, in the worst case several times in a row. */
const settleWithinMs = 60_000;

describe("given two dispatchers that are killed and restarted at random", () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({
      managements: 1,
      dispatchers: 2,
      edges: 0,
      // A broken connection is retried soon, and as often as kills can happen.
      settings: () => ({ "webhook-dispatcher": { WEBHOOK_RETRY_DELAYS: "100ms,100ms,1s" } }),
    });
  });
  afterAll(() => system?.close());

  /** Kills and starts processes, with up to two in service, until all changes are made. */
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

  it("delivers each of 200 changes, and repeats only those between claim and record during a kill", async () => {
    const story = await beginWebhookStory(system, { name: "At random", flags });
    story.receiver.answer(() => ({
      kind: "answer",
      status: 200,
      delayMs: randomInt(maxAnswerMs),
    }));
    const disturbances = await disturb(story.flip({ times, pauseMs }).ended);
    await awaitAllAttempted(system.sql, system.nats.url, settleWithinMs);
    // A stopping dispatcher finishes its attempts. So all claims that remain belong to killed dispatchers.
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
