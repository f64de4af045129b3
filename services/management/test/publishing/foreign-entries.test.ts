import { randomUUID } from "node:crypto";
import { flagEventsStream, quotaBucket, scheduleStream, snapshotBucket } from "@halyard/contracts";
import { ensureSchedule, readPage, streamPosition } from "@halyard/jetstream";
import { eventually, natsLogin, readEpoch, testVerification } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { findUnexplained } from "../../src/publishing/restored-database.ts";
import { flagsOf } from "../flag-fixture.ts";
import { type Management, openManagement, seedProject } from "../management-fixture.ts";
import { openRebuilds, type Rebuilds } from "../rebuild-fixture.ts";
import {
  eventRow,
  flagRow,
  insertRows,
  keyRow,
  observed,
  openPublisher,
  unsentCount,
  whileLeading,
} from "./relay-fixture.ts";

/** A stored message. Other clients may write messages into the relay's streams. */
type Stored = { subject: string; messageId: string | undefined; text: string };

async function read(
  { connection, manager }: { connection: NatsConnection; manager: JetStreamManager },
  stream: string,
  fromSequence = 1,
): Promise<Stored[]> {
  const found: Stored[] = [];
  const options = { connection, manager, stream, fromSequence, pageSize: 1_000_000 };
  await readPage(options, ({ subject, messageId, payload }) => {
    found.push({ subject, messageId, text: new TextDecoder().decode(payload) });
  });
  return found;
}

describe("given a service that uses a snapshot subject as its reply subject", () => {
  let management: Management;
  let project: Awaited<ReturnType<typeof seedProject>>;
  let connection: NatsConnection;
  let edge: NatsConnection;
  let manager: JetStreamManager;

  beforeAll(async () => {
    management = await openManagement();
    project = await seedProject(management);
    connection = await connect({ servers: management.natsUrl });
    manager = await jetstreamManager(connection);
    const { url, user, password } = natsLogin("sdk-edge", management.natsUrl);
    edge = await connect({ servers: url, user, pass: password });
    await ensureSchedule(manager, 1);
  });
  afterAll(async () => {
    await edge?.close();
    await connection?.close();
    await management?.close();
  });

  const createdAt = async (name: string) => (await streamPosition(manager, name))?.createdAt;
  const createdTimes = async () => ({
    log: await createdAt(flagEventsStream.name),
    queue: await createdAt(scheduleStream.name),
  });

  async function forge(subject: string): Promise<void> {
    const epoch = await readEpoch(manager);
    edge.publish(`$JS.API.STREAM.INFO.${quotaBucket.streamName}`, "", { reply: subject });
    await edge.flush();
    await eventually(
      async () => ![undefined, epoch].includes(await readEpoch(manager).catch(() => undefined)),
      { because: "the snapshot is rebuilt" },
    );
  }

  it.each(["x.flag.y", "complete"])(
    "rebuilds the snapshot, and keeps the log and the queue, after a reply to %s",
    async (key) => {
      const flags = flagsOf(management, project);
      const flag = await flags.createFlag({ key: `flag-${key}` });
      const before = await createdTimes();
      await forge(snapshotBucket.subjectPrefix + key);
      expect(await createdTimes()).toEqual(before);
      await eventually(
        async () =>
          (await flags.patch(`/api/v1/flags/${flag.id}`, { enabled: true })).status === 200,
      );
      const entries = await read({ connection, manager }, snapshotBucket.streamName);
      expect(entries.filter(({ text }) => text.includes("io.nats.jetstream"))).toEqual([]);
      expect(await createdTimes()).toEqual(before);
    },
  );
});

describe("given a publisher whose batch is stored in part", () => {
  let rebuilds: Rebuilds;

  beforeAll(async () => {
    rebuilds = await openRebuilds();
  });
  afterAll(() => rebuilds?.close());

  /** Publishes a batch behind a foreign message that the publisher does not know. */
  async function publishBehind(stream: "events" | "snapshot", subject: string): Promise<void> {
    let foreign: Promise<unknown> | undefined;
    const broker = observed(rebuilds.broker, async () => {
      foreign ??= rebuilds.broker.client.publish(subject, "foreign");
      await foreign;
    });
    const publisher = await openPublisher(rebuilds, stream, { broker });
    await expect(publisher.drain()).rejects.toThrow("not everything was acknowledged");
  }

  const findAhead = () =>
    findUnexplained(rebuilds.sql, rebuilds.lease, rebuilds.broker, testVerification());

  it("publishes a flag's events in order although another client wrote before the batch", async () => {
    const { sql, broker } = rebuilds;
    const flagId = randomUUID();
    await whileLeading(rebuilds, async () => {
      await openPublisher(rebuilds, "events");
      const ids = await insertRows(
        sql,
        Array.from({ length: 4 }, () => eventRow("an-organization", flagId)),
      );
      await publishBehind("events", flagEventsStream.subjects[0]);
      await (await openPublisher(rebuilds, "events")).drain();
      const rows =
        await sql`select message_id as "messageId" from outbox where id = any(${ids}) order by id`;
      const published = await read(broker, flagEventsStream.name);
      expect(published.flatMap(({ messageId }) => messageId ?? [])).toEqual(
        rows.map(({ messageId }) => messageId),
      );
    });
  });

  it("does not take an event of another client for an event of lost commits", async () => {
    const { broker } = rebuilds;
    await whileLeading(rebuilds, async () => {
      await openPublisher(rebuilds, "events");
      const [subject] = flagEventsStream.subjects;
      await broker.client.publish(subject, JSON.stringify({}), { msgID: randomUUID() });
      expect(await findAhead()).toBeUndefined();
    });
  });

  it("leaves no foreign entry in the snapshot although part of the batch was stored behind it", async () => {
    const { sql, broker } = rebuilds;
    await whileLeading(rebuilds, async () => {
      const { epoch } = await rebuilds.synchronize();
      await insertRows(
        sql,
        [1, 2, 3].map(() => flagRow(randomUUID())),
      );
      const subject = `${snapshotBucket.subjectPrefix}x.flag.y.z`;
      await publishBehind("snapshot", subject);
      expect(await findAhead()).toBeUndefined();
      const next = await rebuilds.synchronize();
      expect(next.epoch).not.toBe(epoch);
      const entries = await read(broker, snapshotBucket.streamName);
      expect(entries.map((entry) => entry.subject)).not.toContain(subject);
      expect(await unsentCount(sql)).toBe(0);
    });
  });

  it("records only the messages before the first missing acknowledgement", async () => {
    const { sql, broker, lease } = rebuilds;
    await whileLeading(rebuilds, async () => {
      const { lastSequence } = await rebuilds.synchronize();
      const ids = await insertRows(
        sql,
        [1, 2, 3].map(() => keyRow(randomUUID())),
      );
      let published = 0;
      const publish: typeof broker.client.publish = async (...message) => {
        const isLost = ++published === 2;
        const acknowledgement = await broker.client.publish(...message);
        if (isLost) throw new Error("the acknowledgement was lost");
        return acknowledgement;
      };
      const client = Object.create(broker.client, { publish: { value: publish } });
      const publisher = await openPublisher(rebuilds, "snapshot", {
        broker: { ...broker, client },
      });
      await expect(publisher.drain()).rejects.toThrow("not everything was acknowledged");
      const [stream] = await sql`
        select last_sequence as "lastSequence" from relay_streams where stream = 'snapshot'`;
      expect(stream).toEqual({ lastSequence: lastSequence + 1 });
      const sent = await sql`
        select id from outbox where id = any(${ids}) and sent_at is not null`;
      expect(sent.map(({ id }) => id)).toEqual(ids.slice(0, 1));
      await lease.renew();
      expect(await findAhead()).toBeUndefined();
      await (await openPublisher(rebuilds, "snapshot")).drain();
      expect(await unsentCount(sql)).toBe(0);
    });
  });
});
