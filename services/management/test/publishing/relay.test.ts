import { randomUUID } from "node:crypto";
import { type AddressInfo, connect as connectTcp, createServer, type Socket } from "node:net";
import { isDeepStrictEqual } from "node:util";
import { flagEventsStream, snapshotBucket } from "@halyard/contracts";
import { deleteStream, readPage } from "@halyard/jetstream";
import { connectPostgres } from "@halyard/postgres";
import { connectAsSuperuser, eventually, readEpoch, testMessageVerifier } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { pino } from "pino";
import { createPublications } from "../../src/outbox/effects.ts";
import type { Broker } from "../../src/publishing/broker.ts";
import { synchronizeEvents } from "../../src/publishing/events.ts";
import { createLease, type Lease } from "../../src/publishing/lease.ts";
import { createStreamPublisher } from "../../src/publishing/stream-publisher.ts";
import { type Management, openManagement, seedProject } from "../management-fixture.ts";
import { whileLeading } from "./relay-fixture.ts";

/**
 * Tests the relay against a real broker, under the faults that it must survive. These tests cover each mechanism
 * separately; the end-to-end tests cover killed processes.
 */
let counter = 0;

const management = await openManagement();
const key = (await seedProject(management)).serverKey;
const connection = await connect({ servers: management.natsUrl });
afterAll(async () => {
  await connection.close();
  await management.close();
});
const manager = await jetstreamManager(connection);
const logger = pino({ level: "silent" });
const broker: Broker = { connection, client: jetstream(connection), manager, replicas: 1, logger };

async function createFlag(): Promise<{ id: string }> {
  const body = { key: `flag-${++counter}`, name: "A flag" };
  const answer = await management.call("/api/v1/flags", { method: "POST", key, body });
  expect(answer.status).toBe(201);
  return answer.body;
}

const rename = (flag: { id: string }, name: string) =>
  management.call(`/api/v1/flags/${flag.id}`, { method: "PATCH", key, body: { name } });

/** Acquires a separate lease, so that the test can act as a leader beside the running relay. */
async function heldLease(): Promise<Lease> {
  const lease = leaseNamed(randomUUID());
  await lease.acquire();
  return lease;
}

const monotonicMs = () => performance.now();

/**
 * Opens a database connection through a proxy that can withhold PostgreSQL's responses. To PostgreSQL, the client
 * then looks like a stopped process.
 */
async function connectThroughProxy(url: string) {
  const { hostname, port } = new URL(url);
  const answers: { from: Socket; to: Socket }[] = [];
  const between = createServer((client) => {
    const server = connectTcp(Number(port), hostname);
    client.pipe(server).pipe(client);
    // Closes both sockets when either one closes.
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const)
      one.on("error", () => undefined).on("close", () => other.destroy());
    answers.push({ from: server, to: client });
  });
  await new Promise<void>((resolve) => between.listen(0, "127.0.0.1", resolve));
  const proxyUrl = new URL(url);
  proxyUrl.host = `127.0.0.1:${(between.address() as AddressInfo).port}`;
  const logger = pino({ level: "silent" });
  const sql = connectPostgres({ url: proxyUrl.href, name: "test", maxConnections: 1, logger });
  return {
    sql,
    holdResponses() {
      for (const { from, to } of answers) from.unpipe(to);
    },
    releaseResponses() {
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

type Logged = {
  id: string;
  event: string;
  flagId: string;
  timestamp: string;
  sequence: number;
  signature: string | undefined;
  isGenuine: boolean;
};

/** Returns the events in the log, in order. */
async function logged(): Promise<Logged[]> {
  const messages: Logged[] = [];
  const stream = flagEventsStream.name;
  const everything = { connection, manager, stream, fromSequence: 1, pageSize: 1_000_000 };
  await readPage(everything, (message) => {
    const { payload, sequence, headers } = message;
    const { id, event, flag, timestamp } = JSON.parse(new TextDecoder().decode(payload));
    const signature = headers?.get("Halyard-Signature");
    const isGenuine = isDeepStrictEqual(testMessageVerifier(message), { writer: "management" });
    messages.push({ id, event, flagId: flag?.id, timestamp, sequence, signature, isGenuine });
  });
  return messages;
}

const written = () =>
  management.sql<{ messageId: string; sequence: number | null }[]>`
    select message_id as "messageId", stream_sequence as sequence
    from outbox where stream = 'events' order by stream_sequence`;

/** Expects every event once, signed by management, in order for each flag. Events of different flags may be in any order. */
async function expectLogToBeWhole(): Promise<void> {
  await eventually(async () => (await written()).every((row) => row.sequence !== null));
  const rows = await written();
  const log = await logged();
  expect(log.map(({ id, sequence }) => ({ messageId: id, sequence }))).toEqual([...rows]);
  expect(log.filter(({ isGenuine }) => !isGenuine)).toEqual([]);
  for (const ofFlag of Map.groupBy(log, ({ flagId }) => flagId).values()) {
    const timestamps = ofFlag.map(({ timestamp }) => timestamp);
    expect(timestamps).toEqual([...timestamps].sort());
  }
}

const idsOf = (log: readonly Logged[]) => log.map(({ id }) => id).sort();

describe("given changes", () => {
  it("publishes every event once, in the order of each flag's changes", async () => {
    const flags = await Promise.all(Array.from({ length: 20 }, createFlag));
    await Promise.all(flags.map((flag) => rename(flag, "Renamed")));
    await expectLogToBeWhole();
  });

  it("completes a write after its entries are in JetStream", async () => {
    const flag = await createFlag();
    const info = await manager.streams.info(snapshotBucket.streamName, {
      subjects_filter: `${snapshotBucket.subjectPrefix}*.flag.*.${flag.id}`,
    } as never);
    expect(Object.keys(info.state.subjects ?? {})).toHaveLength(2);
  });
});

describe("given a deleted event log", () => {
  it("recreates the log with its previous events and their signatures", async () => {
    const signedOf = (log: readonly Logged[]) => log.map(({ id, signature }) => [id, signature]);
    await expectLogToBeWhole();
    const before = await logged();
    await manager.streams.delete(flagEventsStream.name);
    await eventually(async () => (await logged()).length === before.length);
    expect(signedOf(await logged()).sort()).toEqual(signedOf(before).sort());
    await expectLogToBeWhole();
  });
});

describe("given a deleted log and an outbox with events past the log's retention", () => {
  it("does not publish these events again", async () => {
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

describe("given an event log that another process recreated", () => {
  it("accepts the log and republishes its previous events", async () => {
    const before = await logged();
    // Management may recreate the deleted log first, so the deletion is retried.
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

describe("given a log that lacks acknowledged events", () => {
  it("republishes only the events that the broker lost", async () => {
    await expectLogToBeWhole();
    const before = await logged();
    // Simulates a broker that acknowledged a message and crashed before it wrote the message to disk.
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
    await synchronizeEvents(management.sql, await heldLease(), broker);
    await eventually(async () => (await logged()).length === before.length + 1);
    expect((await logged()).map(({ id }) => id)).toEqual([...before.map(({ id }) => id), lost.id]);
    await expectLogToBeWhole();
  });
});

describe("given a deleted log of many thousand events", () => {
  it("refills it page by page", async () => {
    const many = 12_000;
    await management.sql`
      insert into outbox (stream, message_id, subject, payload)
      select 'events', event.id, 'flag.updated', json_build_object('id', event.id)::text
      from (select gen_random_uuid() as id from generate_series(1, ${many})) as event`;
    // Reading the whole log at each attempt would slow down the relay.
    const length = async () => (await manager.streams.info(flagEventsStream.name)).state.messages;
    await eventually(async () => (await length()) > many, { withinMs: 50_000 });
    const before = await length();
    await manager.streams.delete(flagEventsStream.name);
    await eventually(async () => (await length()) === before, { withinMs: 50_000 });
    await expectLogToBeWhole();
  }, 120_000);
});

describe("given a log that is ahead of the recorded position", () => {
  it("continues after the last event of the log", async () => {
    // Simulates a database that was restored from an older copy.
    await management.sql`
      update relay_streams set last_sequence = 0 where stream = 'events'`;
    const before = await logged();
    const lease = leaseNamed("ahead");
    const { lastSequence } = await whileLeading({ lease }, () =>
      synchronizeEvents(management.sql, lease, broker),
    );
    expect(lastSequence).toBe(before.at(-1)?.sequence);
    await createFlag();
    await expectLogToBeWhole();
  });
});

describe("given events whose acknowledgements were lost", () => {
  it("finds them in the log and does not publish them again", async () => {
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
    await synchronizeEvents(management.sql, await heldLease(), broker);
    expect(await logged()).toEqual(before);
    await expectLogToBeWhole();
  });
});

describe("given a deleted snapshot", () => {
  it("rebuilds it from the tables under another epoch", async () => {
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

describe("given a former leader that resumes late", () => {
  it("publishes nothing, because the streams have advanced", async () => {
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

  /** Returns a fake database with an unsent row, as the former leader had read it. */
  function unsentForever() {
    const row = { id: 1, messageId: randomUUID(), subject: "flag.created", payload: "{}" };
    return { unprepared: async () => [row] } as unknown as Management["sql"];
  }
});

describe("given a lease", () => {
  it("has one holder until it is released", async () => {
    const [one, two] = [leaseNamed("of-this-test"), leaseNamed("of-this-test")];
    expect(await one.acquire()).toBe(true);
    expect(await two.acquire()).toBe(false);
    expect(await one.acquire()).toBe(true);
    await one.release();
    expect(await two.acquire()).toBe(true);
  });

  it("expires without any query", async () => {
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

  it("cannot be renewed after it has expired, even without another holder", async () => {
    const one = leaseNamed("that-ends");
    await one.acquire();
    expect(await one.renew()).toBe(true);
    await endLease("that-ends");
    expect(await one.renew()).toBe(false);
    expect(one.isHeld()).toBe(false);
  });

  it("allows its holder to write until it expires", async () => {
    const one = leaseNamed("to-record");
    await one.acquire();
    expect(await one.recordAsLeader(async () => "recorded")).toBe("recorded");
    await endLease("to-record");
    await expect(one.recordAsLeader(async () => "recorded")).rejects.toThrow("has ended");
  });

  it("becomes free when its holder is stopped during a statement", async () => {
    const { sql, holdResponses, releaseResponses, end } = await connectThroughProxy(
      management.backends.database.runtimeUrls.management,
    );
    const stopped = createLease({ sql, name: "stopped", holder: randomUUID(), monotonicMs });
    await stopped.acquire();
    const recording = stopped.recordAsLeader(async (tx) => {
      holdResponses();
      // The client first requests the type of the parameter and does not receive the response.
      await tx`select ${1}::integer`;
    });
    const broken = expect(recording).rejects.toThrow();
    const other = leaseNamed("stopped");
    await eventually(() => other.acquire());
    releaseResponses();
    await broken;
    await end();
  });

  const endLease = (name: string) =>
    management.sql`update leases set expires_at = clock_timestamp() where name = ${name}`;
});
