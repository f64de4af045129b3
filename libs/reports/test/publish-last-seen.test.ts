import { usageStream } from "@halyard/contracts";
import { ensureUsage } from "@halyard/jetstream";
import {
  eventually,
  natsServerBinary,
  type RestartableNats,
  restoreMessagesAfter,
  startRestartableNats,
} from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { AckPolicy, jetstream } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { publishLastSeen } from "../src/index.ts";

let nats: RestartableNats;
let connection: NatsConnection;

beforeAll(async () => {
  nats = await startRestartableNats(await natsServerBinary());
  connection = await connect({
    servers: nats.url,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 50,
  });
});
afterAll(async () => {
  await connection.close();
  await nats.stop();
});

describe("given a stream that still contains acknowledged messages after a crash", () => {
  it("does not count them as waiting", async () => {
    const { name: stream, lastSeen } = usageStream;
    const client = jetstream(connection);
    const manager = await client.jetstreamManager();
    await ensureUsage(manager, 1);
    await manager.consumers.add(stream, {
      durable_name: lastSeen.consumer,
      filter_subject: lastSeen.subject,
      ack_policy: AckPolicy.Explicit,
    });
    for (let count = 0; count < 60; count++) await client.publish(lastSeen.subject, "message");
    const report = () => publishLastSeen(client, { keys: [], environments: [], flags: [] });
    expect(await report()).toBe("too many wait");
    await restoreMessagesAfter(nats, stream, async () => {
      const consumer = await eventually(() => client.consumers.get(stream, lastSeen.consumer));
      for await (const message of await consumer.fetch({ max_messages: 60 }))
        await message.ackAck();
    });
    // The consumer reads its acknowledgements back some time after the server accepts connections.
    await eventually(async () => (await report()) === "taken");
    expect((await manager.streams.info(stream)).state.messages).toBe(61);
  });
});
