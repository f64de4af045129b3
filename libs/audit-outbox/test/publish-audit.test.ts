import { type AuditRecorded, auditStream } from "@halyard/contracts";
import { ensureAudit } from "@halyard/jetstream";
import { connectPostgres, type Sql, type Transaction } from "@halyard/postgres";
import { createTestDatabase, eventually, startTestNats, type TestDatabase } from "@halyard/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";
import { startPublishingAudit, writeAudit } from "../src/index.ts";

const logger = pino({ level: "silent" });

let database: TestDatabase;
let nats: Awaited<ReturnType<typeof startTestNats>>;
let sql: Sql;
let connection: NatsConnection;
let manager: JetStreamManager;
const publishers: { stop(): Promise<void> }[] = [];

beforeAll(async () => {
  [database, nats] = await Promise.all([createTestDatabase(), startTestNats()]);
  const url = database.runtimeUrls.scheduler;
  sql = connectPostgres({ url, name: "test", maxConnections: 4, logger });
  connection = await connect({ servers: nats.url });
  manager = await jetstreamManager(connection);
});
afterEach(async () => {
  for (const publisher of publishers.splice(0)) await publisher.stop();
  await manager.streams.delete(auditStream.name);
});
afterAll(async () => {
  await connection?.close();
  await sql?.end();
  await Promise.all([database?.drop(), nats?.stop()]);
});

const startPublisher = () =>
  publishers.push(startPublishingAudit({ sql, client: jetstream(connection), logger }));

const idOf = (number: number) => `01890000-0000-7000-8000-${String(number).padStart(12, "0")}`;

/** The publisher does not look into messages. */
const write = (...numbers: number[]) =>
  sql.begin(async (tx) => {
    for (const number of numbers)
      await writeAudit(tx as unknown as Transaction, { id: idOf(number) } as AuditRecorded);
  });

const isPublished = () =>
  eventually(async () => (await sql`select from audit_outbox`).length === 0, {
    because: "the outbox is empty",
  });

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
  });

  it("publishes a change once from two replicas, and again after a crash before the deletion", async () => {
    await ensureAudit(manager, 1);
    startPublisher();
    startPublisher();
    await write(1, 2, 3);
    await isPublished();
    await write(2);
    await isPublished();
    expect(await published()).toEqual([1, 2, 3].map(idOf));
  });

  it("publishes nothing of a transaction that is rolled back", async () => {
    await ensureAudit(manager, 1);
    startPublisher();
    const broken = new Error("rolled back");
    await expect(
      sql.begin(async (tx) => {
        await writeAudit(tx as unknown as Transaction, { id: idOf(4) } as AuditRecorded);
        throw broken;
      }),
    ).rejects.toBe(broken);
    await write(5);
    await isPublished();
    expect(await published()).toEqual([idOf(5)]);
  });
});
