import { scheduleStream } from "@halyard/contracts";
import { connectNats, ensureSchedule } from "@halyard/jetstream";
import {
  eventually,
  natsServerBinary,
  type RestartableNats,
  restoreMessagesAfter,
  startRestartableNats,
} from "@halyard/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import {
  AckPolicy,
  type JetStreamManager,
  type JsMsg,
  jetstream,
  jetstreamManager,
} from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";
import { readQueue } from "../src/dispatch/lost-messages.ts";

/** Tests how the scheduler reads the queue between scheduler and management from a real server. */
const { name: stream, due, resolved } = scheduleStream;
let nats: RestartableNats;
let connection: NatsConnection;
let manager: JetStreamManager;

beforeAll(async () => {
  nats = await startRestartableNats(await natsServerBinary());
  const logger = pino({ level: "silent" });
  connection = await connectNats({ nats: { url: nats.url }, name: "test", logger });
  manager = await jetstreamManager(connection, { checkAPI: false, timeout: 2_000 });
});
beforeEach(async () => {
  await manager.streams.delete(stream).catch(() => undefined);
  await ensureSchedule(manager, 1);
});
afterAll(async () => {
  await connection?.close();
  await nats?.stop();
});

type Direction = typeof due | typeof resolved;

const publish = ({ subject }: Direction) => jetstream(connection).publish(subject, "{}");

async function openConsumers(): Promise<void> {
  for (const { consumer, subject } of [due, resolved])
    await manager.consumers.add(stream, {
      durable_name: consumer,
      filter_subject: subject,
      ack_policy: AckPolicy.Explicit,
    });
}

async function take({ consumer }: Direction): Promise<JsMsg> {
  const consumers = await jetstream(connection).consumers.get(stream, consumer);
  const message = await consumers.next();
  if (message === null) throw new Error("The queue has no message");
  return message;
}

const acknowledge = async (direction: Direction) => (await take(direction)).ackAck();

describe("given a queue without consumers", () => {
  it("contains all messages of the stream", async () => {
    expect(await readQueue(manager)).toEqual({ first: 1, last: 0 });
    await publish(due);
    await publish(due);
    expect(await readQueue(manager)).toEqual({ first: 1, last: 2 });
  });

  it("is empty when the stream does not exist", async () => {
    await manager.streams.delete(stream);
    expect(await readQueue(manager)).toEqual({ first: 1, last: 0 });
  });
});

describe("given a queue with consumers", () => {
  beforeEach(openConsumers);

  it("contains a message until it is acknowledged, in either direction", async () => {
    await publish(due);
    const delivered = await take(due);
    expect(await readQueue(manager)).toEqual({ first: 1, last: 1 });
    await publish(resolved);
    await delivered.ackAck();
    expect(await readQueue(manager)).toEqual({ first: 2, last: 2 });
    await acknowledge(resolved);
    expect(await readQueue(manager)).toEqual({ first: 3, last: 2 });
  });

  it("does not contain acknowledged messages that are still stored after a crash", async () => {
    for (const direction of [due, due, resolved]) await publish(direction);
    await restoreMessagesAfter(nats, stream, async () => {
      await eventually(() => acknowledge(due));
      await acknowledge(due);
      await acknowledge(resolved);
    });
    expect(await eventually(() => readQueue(manager))).toEqual({ first: 4, last: 3 });
    await publish(due);
    expect(await readQueue(manager)).toMatchObject({ last: 4 });
    expect((await readQueue(manager)).first).toBeLessThanOrEqual(4);
    await acknowledge(due);
    expect(await readQueue(manager)).toEqual({ first: 5, last: 4 });
  });
});
