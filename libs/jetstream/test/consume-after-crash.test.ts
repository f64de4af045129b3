import { usageStream } from "@halyard/contracts";
import { ensureUsage, publishLastSeen } from "@halyard/jetstream";
import {
  eventually,
  natsServerBinary,
  type RestartableNats,
  restoreMessagesAfter,
  startRestartableNats,
} from "@halyard/testing";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { AckPolicy } from "@nats-io/jetstream";
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

  it("does not count them as waiting when a service sends times of last use", async () => {
    const { name: stream, lastSeen } = usageStream;
    await ensureUsage(bench.manager, 1);
    await bench.manager.consumers.add(stream, {
      durable_name: lastSeen.consumer,
      filter_subject: lastSeen.subject,
      ack_policy: AckPolicy.Explicit,
    });
    for (const name of names(60)) await bench.client.publish(lastSeen.subject, name);
    const report = () => publishLastSeen(bench.client, { keys: [], environments: [], flags: [] });
    expect(await report()).toBe("too many wait");
    await restoreMessagesAfter(nats, stream, async () => {
      const consumer = await eventually(() =>
        bench.client.consumers.get(stream, lastSeen.consumer),
      );
      for await (const message of await consumer.fetch({ max_messages: 60 }))
        await message.ackAck();
    });
    expect(await eventually(report)).toBe("taken");
    expect((await bench.manager.streams.info(stream)).state.messages).toBe(61);
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
