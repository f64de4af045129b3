import {
  eventually,
  natsServerBinary,
  type RestartableNats,
  restoreMessagesAfter,
  startRestartableNats,
} from "@halyard/testing";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createQueueBench, type Queue, type QueueBench } from "./queue-bench.ts";

/** Work queues after a crash that leaves the stream and its consumer in different states. */
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

const names = (count: number) => Array.from({ length: count }, (_, index) => `message ${index}`);

/** Consumes until no message waits, and stops. */
async function consumeAll(queue: Queue): Promise<void> {
  const { consumption } = await bench.consume(queue);
  await eventually(async () => (await queue.waiting()) === 0);
  await consumption.stop();
}

describe("given a stream that still contains acknowledged messages", () => {
  it("delivers none of them again, and delivers new messages", async () => {
    const queue = await bench.openQueue();
    await queue.publish(names(5));
    await restoreMessagesAfter(nats, queue.stream, () => consumeAll(queue));
    await eventually(() => queue.publish(["new"]).then(() => true));
    const release = Promise.withResolvers<"done">();
    const { handled } = await bench.consume(queue, { handle: () => release.promise });
    await eventually(() => handled.length === 1);
    release.resolve("done");
    await eventually(async () => (await queue.waiting()) === 0);
    expect(await queue.left()).toBe(5);
    expect(handled).toEqual(["new"]);
  });
});

describe("given a stream that ends before the position of its consumer", () => {
  it("delivers messages that are published later", async () => {
    const queue = await bench.openQueue();
    await queue.publish(names(1));
    const { handled } = await bench.consume(queue);
    await eventually(async () => (await queue.left()) === 0);
    await restoreMessagesAfter(nats, queue.stream, async () => {
      await eventually(() => queue.publish(names(9)).then(() => true));
      await eventually(async () => (await queue.waiting()) === 0);
    });
    const consumer = await bench.consume(queue);
    await eventually(() => queue.publish(["new"]).then(() => true));
    await eventually(() => [...handled, ...consumer.handled].includes("new"));
  });
});
