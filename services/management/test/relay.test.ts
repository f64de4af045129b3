import { randomUUID } from "node:crypto";
import { type AddressInfo, connect as connectTcp, createServer, type Socket } from "node:net";
import { flagEventsStream, leaseKey, leasesBucket, snapshotBucket } from "@halyard/contracts";
import { deleteStream, ensureLeases, readPage } from "@halyard/jetstream";
import { connectPostgres } from "@halyard/postgres";
import { connectAsSuperuser, eventually, readEpoch } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";
import { createPublications } from "../src/outbox/publications.ts";
import type { Broker } from "../src/relay/broker.ts";
import { synchroniseEvents } from "../src/relay/events.ts";
import { createLease, type Lease } from "../src/relay/lease.ts";
import { createStreamPublisher } from "../src/relay/stream-publisher.ts";
import { type Management, openManagement, seedProject } from "./management-fixture.ts";
import { whileLeading } from "./relay-fixture.ts";

/**
 * The relay against a real broker, disturbed in the ways that it has to survive. What whole processes
 * do when they are killed is told in the end-to-end tests; here each mechanism stands alone.
 */
let management: Management;
let key: string;
let connection: NatsConnection;
let manager: JetStreamManager;
let broker: Broker;
let counter = 0;

beforeAll(async () => {
  management = await openManagement();
  key = (await seedProject(management)).serverKey;
  connection = await connect({ servers: management.natsUrl });
  manager = await jetstreamManager(connection);
  const logger = pino({ level: "silent" });
  broker = { connection, client: jetstream(connection), manager, replicas: 1, logger };
});
afterAll(async () => {
  await connection.close();
  await management.close();
});

async function createFlag(): Promise<{ id: string }> {
  const body = { key: `flag-${++counter}`, name: "A flag" };
  const answer = await management.call("/api/v1/flags", { method: "POST", key, body });
  expect(answer.status).toBe(201);
  return answer.body;
}

const rename = (flag: { id: string }, name: string) =>
  management.call(`/api/v1/flags/${flag.id}`, { method: "PATCH", key, body: { name } });

/** A lease of the test's own, so that what a leader may do can be done beside the one that leads. */
async function heldLease(): Promise<Lease> {
  const lease = leaseNamed(randomUUID());
  await lease.acquire();
  return lease;
}

const monotonicMs = () => performance.now();

/**
 * A connection over which answers stop coming when the test says so: to PostgreSQL it is that of a process
 * that was stopped.
 */
async function connectDeafly(url: string) {
  const { hostname, port } = new URL(url);
  const answers: { from: Socket; to: Socket }[] = [];
  const between = createServer((client) => {
    const server = connectTcp(Number(port), hostname);
    client.pipe(server).pipe(client);
    // What breaks one half breaks the other.
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const)
      one.on("error", () => undefined).on("close", () => other.destroy());
    answers.push({ from: server, to: client });
  });
  await new Promise<void>((resolve) => between.listen(0, "127.0.0.1", resolve));
  const throughIt = new URL(url);
  throughIt.host = `127.0.0.1:${(between.address() as AddressInfo).port}`;
  const logger = pino({ level: "silent" });
  const sql = connectPostgres({ url: throughIt.href, name: "deaf", maxConnections: 1, logger });
  return {
    sql,
    stopListening() {
      for (const { from, to } of answers) from.unpipe(to);
    },
    listenAgain() {
      for (const { from, to } of answers) from.pipe(to);
    },
    async end() {
      await sql.end();
      between.close();
    },
  };
}

const leaseNamed = (name: string, holder: string = randomUUID()) =>
  createLease({ sql: management.sql, name, holder, monotonicMs });

type Logged = { id: string; event: string; flagId: string; timestamp: string; sequence: number };

/** What stands in the log, in order. */
async function logged(): Promise<Logged[]> {
  const messages: Logged[] = [];
  const stream = flagEventsStream.name;
  const everything = { connection, manager, stream, fromSequence: 1, pageSize: 1_000_000 };
  await readPage(everything, ({ payload, sequence }) => {
    const { id, event, flag, timestamp } = JSON.parse(new TextDecoder().decode(payload));
    messages.push({ id, event, flagId: flag?.id, timestamp, sequence });
  });
  return messages;
}

const written = () =>
  management.sql<{ messageId: string; sequence: number | null }[]>`
    select message_id as "messageId", stream_sequence as sequence
    from outbox where stream = 'events' order by stream_sequence`;

/** Every event once, and each flag's in their order; of different flags the later may come first. */
async function expectLogToBeWhole(): Promise<void> {
  await eventually(async () => (await written()).every((row) => row.sequence !== null));
  const rows = await written();
  const log = await logged();
  expect(log.map(({ id, sequence }) => ({ messageId: id, sequence }))).toEqual([...rows]);
  for (const ofFlag of Map.groupBy(log, ({ flagId }) => flagId).values()) {
    const timestamps = ofFlag.map(({ timestamp }) => timestamp);
    expect(timestamps).toEqual([...timestamps].sort());
  }
}

const idsOf = (log: readonly Logged[]) => log.map(({ id }) => id).sort();

describe("given changes", () => {
  it("has every event in the log, once, in the order of each flag's changes", async () => {
    const flags = await Promise.all(Array.from({ length: 20 }, createFlag));
    await Promise.all(flags.map((flag) => rename(flag, "Renamed")));
    await expectLogToBeWhole();
  });

  it("answers a write when its event and its entries are in JetStream", async () => {
    const flag = await createFlag();
    expect((await logged()).at(-1)).toMatchObject({ event: "flag.created", flagId: flag.id });
    const info = await manager.streams.info(snapshotBucket.streamName, {
      subjects_filter: `${snapshotBucket.subjectPrefix}*.flag.*.${flag.id}`,
    } as never);
    expect(Object.keys(info.state.subjects ?? {})).toHaveLength(2);
  });
});

describe("given a log of events that is deleted", () => {
  it("makes it again and fills it with what it held", async () => {
    const before = await logged();
    await manager.streams.delete(flagEventsStream.name);
    await eventually(async () => (await logged()).length === before.length);
    expect(idsOf(await logged())).toEqual(idsOf(before));
    await expectLogToBeWhole();
  });
});

describe("given a log that is deleted and an outbox with events older than the log keeps them", () => {
  it("does not publish these again", async () => {
    await createFlag();
    await expectLogToBeWhole();
    const [old] = await management.sql<{ id: string }[]>`
      select message_id as id from outbox where stream = 'events' order by id limit 1`;
    const admin = connectAsSuperuser(management.adminUrl, "management");
    await admin`update outbox set created_at = created_at - interval '8 days'
      where message_id = ${old?.id ?? null}`;
    const before = await logged();
    await manager.streams.delete(flagEventsStream.name);
    await eventually(async () => (await logged()).length === before.length - 1);
    expect(idsOf(await logged())).toEqual(idsOf(before.filter(({ id }) => id !== old?.id)));
    await admin`delete from outbox where message_id = ${old?.id ?? null}`;
    await admin.end();
    await expectLogToBeWhole();
  });
});

describe("given a log of events that another process made anew", () => {
  it("takes it as it is and fills it with what the old one held", async () => {
    const before = await logged();
    // Management may create the deleted log first, with its own settings.
    await eventually(async () => {
      await deleteStream(manager, flagEventsStream.name);
      return manager.streams.add({
        name: flagEventsStream.name,
        subjects: [...flagEventsStream.subjects],
      });
    });
    await eventually(async () => (await logged()).length === before.length);
    expect(idsOf(await logged())).toEqual(idsOf(before));
  });
});

describe("given a log that ends before what was acknowledged", () => {
  it("publishes again what the broker lost, and nothing else", async () => {
    await expectLogToBeWhole();
    const before = await logged();
    // As after a broker that acknowledged a message and died before its disk had it.
    const lost = { id: randomUUID(), sequence: before.length + 1 };
    await management.sql.begin(async (tx) => {
      await tx`
        insert into outbox (stream, message_id, subject, payload)
        values ('events', ${lost.id}, 'flag.updated', ${JSON.stringify({ id: lost.id })})`;
      await tx`
        update outbox set sent_at = now(), stream_sequence = ${lost.sequence}
        where message_id = ${lost.id}`;
      await tx`
        update relay_streams set last_sequence = ${lost.sequence} where stream = 'events'`;
    });
    await synchroniseEvents(management.sql, await heldLease(), broker, createPublications());
    await eventually(async () => (await logged()).length === before.length + 1);
    expect((await logged()).map(({ id }) => id)).toEqual([...before.map(({ id }) => id), lost.id]);
    await expectLogToBeWhole();
  });
});

describe("given a log of many thousand events that is deleted", () => {
  it("refills it page by page", async () => {
    const many = 12_000;
    await management.sql`
      insert into outbox (stream, message_id, subject, payload)
      select 'events', event.id, 'flag.updated', json_build_object('id', event.id)::text
      from (select gen_random_uuid() as id from generate_series(1, ${many})) as event`;
    // Reading all of the log at each try would hold up the relay.
    const length = async () => (await manager.streams.info(flagEventsStream.name)).state.messages;
    await eventually(async () => (await length()) > many, { withinMs: 50_000 });
    const before = await length();
    await manager.streams.delete(flagEventsStream.name);
    await eventually(async () => (await length()) === before, { withinMs: 50_000 });
    await expectLogToBeWhole();
  }, 120_000);
});

describe("given a log that is ahead of everything that is recorded", () => {
  it("goes on behind it, however long it is", async () => {
    // As after a database that was restored from an older copy.
    await management.sql`
      update relay_streams set last_sequence = 0 where stream = 'events'`;
    const before = await logged();
    const lease = leaseNamed("ahead");
    const { lastSequence } = await whileLeading({ lease }, () =>
      synchroniseEvents(management.sql, lease, broker, createPublications()),
    );
    expect(lastSequence).toBe(before.at(-1)?.sequence);
    await createFlag();
    await expectLogToBeWhole();
  });
});

describe("given events whose acknowledgements were lost", () => {
  it("finds them in the log and publishes none again", async () => {
    await createFlag();
    await expectLogToBeWhole();
    const before = await logged();
    const last = before.at(-1);
    await management.sql.begin(async (tx) => {
      await tx`
        update relay_streams set last_sequence = ${(last?.sequence ?? 0) - 1}
        where stream = 'events'`;
      await tx`
        update outbox set sent_at = null, stream_sequence = null
        where stream = 'events' and stream_sequence = ${last?.sequence ?? 0}`;
    });
    await synchroniseEvents(management.sql, await heldLease(), broker, createPublications());
    expect(await logged()).toEqual(before);
    await expectLogToBeWhole();
  });
});

describe("given a snapshot that is deleted", () => {
  it("writes it anew from the tables, under another epoch", async () => {
    await createFlag();
    const epoch = await readEpoch(manager);
    await manager.streams.delete(snapshotBucket.streamName);
    const next = await eventually(() => readEpoch(manager));
    expect(next).not.toBe(epoch);
    const [row] = await management.sql`select count(*)::integer as states from flag_states`;
    const info = await manager.streams.info(snapshotBucket.streamName, {
      subjects_filter: `${snapshotBucket.subjectPrefix}*.flag.>`,
    } as never);
    expect(Object.keys(info.state.subjects ?? {})).toHaveLength(row?.states);
  });
});

describe("given the bucket of open streams", () => {
  const isEstablished = async () => {
    const subject = leasesBucket.subjectPrefix + leaseKey.established;
    const query = { last_by_subj: subject };
    return (await manager.direct.getMessage(leasesBucket.streamName, query)) !== null;
  };

  it("marks it as established in a new installation", async () => {
    expect(await isEstablished()).toBe(true);
  });

  it("does not mark it again after the broker lost its data", async () => {
    const epoch = await readEpoch(manager);
    for (const { streamName } of [leasesBucket, snapshotBucket])
      await manager.streams.delete(streamName);
    await ensureLeases(manager, 1);
    await eventually(async () => ![undefined, epoch].includes(await readEpoch(manager)));
    expect(await isEstablished()).toBe(false);
  });
});

describe("given a former leader that wakes up late", () => {
  it("publishes nothing, because the streams have moved on", async () => {
    const { state } = await manager.streams.info(flagEventsStream.name);
    await createFlag();
    await expectLogToBeWhole();
    const before = await logged();
    const publisher = createStreamPublisher({
      stream: "events",
      sql: unsentForever(),
      lease: await heldLease(),
      broker,
      publications: createPublications(),
      lastSequence: state.last_seq,
      isLeading: () => true,
    });
    await expect(publisher.drain()).rejects.toThrow("not everything was acknowledged");
    expect(await logged()).toEqual(before);
  });

  /** A database as the former leader remembers it: with a row that it has yet to publish. */
  function unsentForever() {
    const row = { id: 1, messageId: randomUUID(), subject: "flag.created", payload: "{}" };
    return { unprepared: async () => [row] } as unknown as Management["sql"];
  }
});

describe("given a lease", () => {
  it("is held by one, until it is given up", async () => {
    const [one, two] = [leaseNamed("of-this-test"), leaseNamed("of-this-test")];
    expect(await one.acquire()).toBe(true);
    expect(await two.acquire()).toBe(false);
    expect(await one.acquire()).toBe(true);
    await one.release();
    expect(await two.acquire()).toBe(true);
  });

  it("is no longer held when its time has passed, even if nobody said so", async () => {
    let now = 0;
    const one = createLease({
      sql: management.sql,
      name: "of-another-test",
      holder: randomUUID(),
      monotonicMs: () => now,
    });
    await one.acquire();
    expect(one.isHeld()).toBe(true);
    now = 3_000;
    expect(one.isHeld()).toBe(false);
  });

  it("is not renewed once it has ended, even if nobody else has taken it", async () => {
    const one = leaseNamed("that-ends");
    await one.acquire();
    expect(await one.renew()).toBe(true);
    await endLease("that-ends");
    expect(await one.renew()).toBe(false);
    expect(one.isHeld()).toBe(false);
  });

  it("lets its holder record while it lasts, and nothing afterwards", async () => {
    const one = leaseNamed("to-record");
    await one.acquire();
    expect(await one.recordAsLeader(async () => "recorded")).toBe("recorded");
    await endLease("to-record");
    await expect(one.recordAsLeader(async () => "recorded")).rejects.toThrow("has ended");
  });

  it("comes free when its holder is stopped in the middle of a statement", async () => {
    const { sql, stopListening, listenAgain, end } = await connectDeafly(
      management.backends.database.runtimeUrls.management,
    );
    const stopped = createLease({ sql, name: "stopped", holder: randomUUID(), monotonicMs });
    await stopped.acquire();
    const recording = stopped.recordAsLeader(async (tx) => {
      stopListening();
      // What type its parameter has is asked first, and the answer is not heard.
      await tx`select ${1}::integer`;
    });
    const broken = expect(recording).rejects.toThrow();
    const other = leaseNamed("stopped");
    await eventually(() => other.acquire());
    listenAgain();
    await broken;
    await end();
  });

  const endLease = (name: string) =>
    management.sql`update leases set expires_at = clock_timestamp() where name = ${name}`;
});
