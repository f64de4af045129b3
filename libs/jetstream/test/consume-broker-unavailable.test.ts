import {
  eventually,
  natsServerBinary,
  type RestartableNats,
  startRestartableNats,
} from "@halyard/testing";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createQueueBench, type QueueBench } from "./queue-bench.ts";

/** Consumption of a work queue while its broker is killed, unavailable, restarted or silent. */
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

describe("given NATS that is killed while messages are in progress, and restarted", () => {
  it("loses no message", async () => {
    const queue = await bench.openQueue();
    await queue.publish(names);
    const killed = Promise.withResolvers<void>();
    let begun = 0;
    const replica = await bench.consume(queue, {
      concurrency: 4,
      ackWaitMs: 1_000,
      handle: async () => {
        begun += 1;
        if (begun > 10) await killed.promise;
        return "done";
      },
    });
    await eventually(() => begun > 10);
    await nats.kill();
    killed.resolve();
    await eventually(() => !replica.consumption.isRunning());
    await nats.start();
    // Some are delivered twice, because a killed server loses acknowledgements that it has not written yet. Others are
    // acknowledged but still stored (nats-server 2.9).
    await eventually(() => new Set(replica.handled).size === names.length);
    await eventually(async () => (await queue.waiting()) === 0);
    expect(new Set(replica.handled)).toEqual(new Set(names));
  });
});

describe("given a message whose processing ends while NATS is unavailable", () => {
  it("is removed when NATS is available again", async () => {
    const queue = await bench.openQueue();
    await queue.publish(["once"]);
    const release = Promise.withResolvers<"done">();
    // Longer than this test, so that the message is not delivered again.
    const bounds = { ackWaitMs: 120_000 };
    const replica = await bench.consume(queue, { ...bounds, handle: () => release.promise });
    await eventually(() => replica.handled.length === 1);
    await nats.kill();
    await eventually(() => !replica.consumption.isRunning());
    release.resolve("done");
    await nats.start();
    await eventually(async () => (await queue.left()) === 0);
    expect(replica.handled).toEqual(["once"]);
  });
});

describe("given NATS that is unavailable when consumption starts", () => {
  it("consumes when NATS is available, and can be stopped before", async () => {
    const queue = await bench.openQueue();
    await queue.publish(["waiting"]);
    await nats.kill();
    await eventually(() => bench.isUnavailable());
    const stopped = bench.consumeOver(bench.connection, queue);
    await stopped.consumption.stop();
    const { handled } = bench.consumeOver(bench.connection, queue);
    await nats.start();
    await eventually(() => handled.length === 1);
    expect(stopped.handled).toEqual([]);
  });
});

describe("given NATS that is silent while its connections stay open", () => {
  it("detects the silence, and continues when NATS responds again", async () => {
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
