import { type AuditRecorded, auditStream } from "@halyard/contracts";
import { ensureAudit } from "@halyard/jetstream";
import { connectPostgres } from "@halyard/postgres";
import { createTestDatabase, eventually, startTestNats, testMessageSigner } from "@halyard/testing";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { AckPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { pino } from "pino";
import { startPublishingAudit, writeAudit } from "../src/index.ts";

const logger = pino({ level: "silent" });

const publishers: { stop(): Promise<void> }[] = [];

const [database, nats] = await Promise.all([createTestDatabase(), startTestNats()]);
const url = database.runtimeUrls.scheduler;
const sql = connectPostgres({ url, name: "test", maxConnections: 4, logger });
const connection = await connect({ servers: nats.url });
afterAll(async () => {
  await connection.close();
  await sql.end();
  await Promise.all([database.drop(), nats.stop()]);
});
const manager = await jetstreamManager(connection);
afterEach(async () => {
  for (const publisher of publishers.splice(0)) await publisher.stop();
  await manager.streams.delete(auditStream.name);
  await sql`delete from audit_outbox`;
});

const startPublisher = () => {
  const sign = testMessageSigner("scheduler");
  publishers.push(startPublishingAudit({ sql, client: jetstream(connection), sign, logger }));
};

const idOf = (number: number) => `01890000-0000-7000-8000-${String(number).padStart(12, "0")}`;

/** Writes incomplete messages, because the publisher does not read their content. */
const write = (...numbers: number[]) =>
  sql.begin(async (tx) => {
    for (const number of numbers) await writeAudit(tx, { id: idOf(number) } as AuditRecorded);
  });

const isPublished = () =>
  eventually(
    async () => (await sql`select from audit_outbox where stream_sequence is null`).length === 0,
    { because: "everything is published" },
  );

const isEmpty = () =>
  eventually(async () => (await sql`select from audit_outbox`).length === 0, {
    because: "the outbox is empty",
  });

/** Receives and acknowledges messages like management. */
async function handle(count: number): Promise<unknown[]> {
  const { name, recorded } = auditStream;
  await manager.consumers.add(name, {
    durable_name: recorded.consumer,
    ack_policy: AckPolicy.Explicit,
  });
  const consumer = await jetstream(connection).consumers.get(name, recorded.consumer);
  const taken: unknown[] = [];
  while (taken.length < count) {
    const message = await consumer.next({ expires: 5_000 });
    if (message === null) break;
    taken.push(message.json<AuditRecorded>().id);
    await message.ackAck();
  }
  return taken;
}

async function published(): Promise<unknown[]> {
  const { state } = await manager.streams.info(auditStream.name);
  const sequences = Array.from({ length: state.messages }, (_, index) => state.first_seq + index);
  return Promise.all(
    sequences.map(async (seq) => {
      const message = await manager.streams.getMessage(auditStream.name, { seq });
      return message?.json<AuditRecorded>().id;
    }),
  );
}

describe("publishing the outbox", () => {
  it("waits for the stream, then publishes in the order of the changes", async () => {
    const numbers = Array.from({ length: 150 }, (_, index) => index);
    startPublisher();
    await write(...numbers.toReversed());
    await ensureAudit(manager, 1);
    await isPublished();
    expect(await published()).toEqual(numbers.map(idOf));
    await handle(150);
    await isEmpty();
  });

  it("publishes a change once, even from two replicas and after a crash", async () => {
    await ensureAudit(manager, 1);
    startPublisher();
    startPublisher();
    await write(1, 2, 3);
    await isPublished();
    await sql`update audit_outbox set stream_sequence = null, stream_created_at = null`;
    await isPublished();
    expect(await published()).toEqual([1, 2, 3].map(idOf));
    expect(await handle(3)).toEqual([1, 2, 3].map(idOf));
    await isEmpty();
  });

  it("publishes nothing of a transaction that is rolled back", async () => {
    await ensureAudit(manager, 1);
    startPublisher();
    const broken = new Error("rolled back");
    await expect(
      sql.begin(async (tx) => {
        await writeAudit(tx, { id: idOf(4) } as AuditRecorded);
        throw broken;
      }),
    ).rejects.toBe(broken);
    await write(5);
    await isPublished();
    expect(await handle(1)).toEqual([idOf(5)]);
    await isEmpty();
  });
});

describe("given messages that management has not acknowledged", () => {
  it("keeps their rows, and publishes them again to a stream that was created again", async () => {
    await ensureAudit(manager, 1);
    startPublisher();
    await write(6, 7);
    await isPublished();
    expect(await handle(1)).toEqual([idOf(6)]);
    await eventually(async () => (await sql`select from audit_outbox`).length === 1);
    await manager.streams.delete(auditStream.name);
    await ensureAudit(manager, 1);
    expect(await handle(1)).toEqual([idOf(7)]);
    await isEmpty();
  });
});
