import { flagEventsStream } from "@halyard/contracts";
import {
  boundStream,
  connectNats,
  deleteStream,
  ensureFlagEvents,
  findStream,
} from "@halyard/jetstream";
import { startTestNats } from "@halyard/testing";
import { afterAll, beforeEach, describe, expect, it } from "@jest/globals";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { pino } from "pino";
import type { Broker } from "../../src/publishing/broker.ts";
import { type EventsSize, eventsAlarm, watchEventsSize } from "../../src/publishing/events.ts";
import { createUnreadEvents } from "../../src/publishing/unread-events.ts";

/** Tests the size limit of the event log. */
const mebibyte = 1024 * 1024;
const { name } = flagEventsStream;

let lines: { msg: string }[] = [];

const nats = await startTestNats();
const logger = pino({ level: "warn" }, { write: (line) => void lines.push(JSON.parse(line)) });
const connection = await connectNats({ nats: { url: nats.url }, name: "test", logger });
const manager = await jetstreamManager(connection);
const broker: Broker = { connection, client: jetstream(connection), manager, replicas: 1, logger };
afterAll(async () => {
  await broker.connection.close();
  await nats.stop();
});
beforeEach(async () => {
  lines = [];
  await deleteStream(broker.manager, name);
});

/** Creates the log as release 0.1.0 does. */
const createUnbounded = () =>
  broker.manager.streams.add({ name, subjects: [...flagEventsStream.subjects] });

async function publish(mebibytes: number): Promise<void> {
  const payload = "x".repeat(mebibyte / 2);
  for (let sent = 0; sent < 2 * mebibytes; sent += 1)
    await broker.client.publish("flag.updated", payload);
}

const boundOf = async () => (await findStream(broker.manager, name))?.config.max_bytes;

/** Measures the log once. */
async function measure(
  flagEventsMaxBytes: number,
  unread = createUnreadEvents(flagEventsMaxBytes),
): Promise<EventsSize[]> {
  const sizes: EventsSize[] = [];
  const ending = new AbortController();
  const onEventsSize = (size: EventsSize) => {
    sizes.push(size);
    ending.abort();
  };
  const bounded = { ...broker, flagEventsMaxBytes };
  await watchEventsSize({ broker: bounded, unread, onEventsSize }, ending.signal);
  return sizes;
}

describe("given no event log", () => {
  it("creates the log with the limit", async () => {
    await ensureFlagEvents(broker.manager, 1, 20 * mebibyte);
    expect(await boundOf()).toBe(20 * mebibyte);
  });
});

describe("given an event log without a limit, from an earlier release", () => {
  beforeEach(createUnbounded);

  it("applies the limit and keeps the events", async () => {
    await publish(1);
    expect(await measure(20 * mebibyte)).toMatchObject([{ maxBytes: 20 * mebibyte, unread: 0 }]);
    expect(await boundOf()).toBe(20 * mebibyte);
    expect((await findStream(broker.manager, name))?.state.messages).toBe(2);
    expect(lines).toEqual([]);
  });

  it("does not apply a limit below its size, because that would discard events", async () => {
    await publish(3);
    await measure(2 * mebibyte);
    expect(await boundOf()).toBe(-1);
    expect((await findStream(broker.manager, name))?.state.messages).toBe(6);
    expect(lines.map(({ msg }) => msg)).toEqual([expect.stringContaining("is larger than")]);
  });

  it("reports a log that is almost full before it discards events", async () => {
    await publish(9);
    await measure(10 * mebibyte);
    expect(lines.map(({ msg }) => msg)).toEqual([expect.stringContaining("almost full")]);
    expect((await findStream(broker.manager, name))?.state.messages).toBe(18);
  });

  it("counts the events that webhook dispatchers have not processed", async () => {
    await broker.manager.consumers.add(name, {
      durable_name: flagEventsStream.webhookConsumer,
      ack_policy: "explicit",
    });
    await publish(1);
    expect(await measure(20 * mebibyte)).toMatchObject([{ unread: 2 }]);
  });

  it("holds the events of an organization back until dispatchers have processed its earlier ones", async () => {
    const { webhookConsumer } = flagEventsStream;
    await broker.manager.consumers.add(name, {
      ...{ durable_name: webhookConsumer, ack_policy: "explicit" },
    });
    await publish(1);
    const unread = createUnreadEvents(16 * mebibyte);
    for (const lastSequence of [1, 2]) unread.add("large", { lastSequence, bytes: mebibyte / 2 });
    expect(await measure(16 * mebibyte, unread)).toMatchObject([{ waitingOrganizations: 1 }]);
    const consumer = await broker.client.consumers.get(name, webhookConsumer);
    await (await consumer.next())?.ackAck();
    expect(await measure(16 * mebibyte, unread)).toMatchObject([
      { unread: 1, waitingOrganizations: 0 },
    ]);
  });
});

describe("given an event log at its limit", () => {
  it("discards the oldest events and accepts new ones", async () => {
    await ensureFlagEvents(broker.manager, 1, 4 * mebibyte);
    await publish(6);
    const state = (await findStream(broker.manager, name))?.state;
    expect(state?.last_seq).toBe(12);
    expect(state?.first_seq).toBeGreaterThan(1);
    expect(state?.bytes).toBeLessThanOrEqual(4 * mebibyte);
  });
});

describe("given a size and a limit", () => {
  it.each([
    [79, 100, 100, undefined],
    [80, 100, 100, "almost full"],
    [50, undefined, 100, "is not applied"],
    [50, 200, 100, "is not applied"],
    [150, undefined, 100, "is larger than"],
  ])("reports %s of %s bytes, configured %s, as %s", (bytes, maxBytes, configured, expected) => {
    const alarm = eventsAlarm({ bytes, maxBytes }, configured);
    if (expected === undefined) expect(alarm).toBeUndefined();
    else expect(alarm).toContain(expected);
  });
});

describe("given a stream that does not exist", () => {
  it("applies no limit", async () => {
    expect(await boundStream(broker.manager, name, mebibyte)).toBeUndefined();
  });
});
