import { setTimeout as delay } from "node:timers/promises";
import {
  eventually,
  natsServerBinary,
  type RestartableNats,
  startRestartableNats,
} from "@halyard/testing";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createQueueBench, type QueueBench } from "./queue-bench.ts";

/** Consuming a work queue while its broker is killed, away, back, silent, or back without memory. */
let nats: RestartableNats;
let bench: QueueBench;

beforeEach(async () => {
  nats = await startRestartableNats(await natsServerBinary());
  bench = await createQueueBench(nats.url);
});
afterEach(async () => {
  await bench.close();
  await nats.stop();
});

const names = Array.from({ length: 40 }, (_, index) => `message ${index}`);

describe("given NATS that is killed in the middle of the work and comes back", () => {
  it("loses no message", async () => {
    const queue = await bench.openQueue();
    await queue.publish(names);
    const replica = await bench.consume(queue, {
      concurrency: 4,
      ackWaitMs: 1_000,
      handle: async () => {
        await delay(20);
        return "done";
      },
    });
    await eventually(() => replica.handled.length >= 10);
    await nats.kill();
    await eventually(() => !replica.consumption.isRunning());
    await nats.start();
    // Some come twice: a killed server forgets acknowledgements that it had not written yet. Others are
    // acknowledged and still stored (nats-server 2.9).
    await eventually(() => new Set(replica.handled).size === names.length);
    await eventually(async () => (await queue.waiting()) === 0);
    expect(new Set(replica.handled)).toEqual(new Set(names));
  });
});

describe("given a message whose work ends while NATS is away", () => {
  it("is removed when NATS is back", async () => {
    const queue = await bench.openQueue();
    await queue.publish(["away"]);
    const release = Promise.withResolvers<"done">();
    // It cannot come a second time as long as this test takes.
    const bounds = { ackWaitMs: 120_000 };
    const replica = await bench.consume(queue, { ...bounds, handle: () => release.promise });
    await eventually(() => replica.handled.length === 1);
    await nats.kill();
    await eventually(() => !replica.consumption.isRunning());
    release.resolve("done");
    await nats.start();
    await eventually(async () => (await queue.left()) === 0);
    expect(replica.handled).toEqual(["away"]);
  });
});

describe("given NATS that is away as the consuming begins", () => {
  it("begins when it comes, and stops in the meantime if it is told to", async () => {
    const queue = await bench.openQueue();
    await queue.publish(["waiting"]);
    await nats.kill();
    await eventually(() => bench.isUnavailable());
    const impatient = bench.consumeOver(bench.connection, queue);
    await impatient.consumption.stop();
    const { handled } = bench.consumeOver(bench.connection, queue);
    await nats.start();
    await eventually(() => handled.length === 1);
    expect(impatient.handled).toEqual([]);
  });
});

describe("given NATS that falls silent with its connections open", () => {
  it("notices, and goes on when it speaks again", async () => {
    const queue = await bench.openQueue();
    const replica = await bench.consume(queue);
    nats.signal("SIGSTOP");
    await eventually(() => !replica.consumption.isRunning());
    nats.signal("SIGCONT");
    await queue.publish(["after"]);
    await eventually(async () => (await queue.left()) === 0);
    expect(replica.handled).toEqual(["after"]);
  });
});
