import {
  flagEventsStream,
  type ScheduleDue,
  scheduleStream,
  snapshotBucket,
} from "@halyard/contracts";
import { ensureSchedule, publishSigned, readPage, streamPosition } from "@halyard/jetstream";
import { connectPostgres, type Sql } from "@halyard/postgres";
import { eventually, readEpoch, testMessageSigner, testVerification } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { pino } from "pino";
import { v4 as uuidv4 } from "uuid";
import type { Broker } from "../../src/publishing/broker.ts";
import { createLease } from "../../src/publishing/lease.ts";
import { queueStatus } from "../../src/publishing/records.ts";
import { discardStreams, findUnexplained } from "../../src/publishing/restored-database.ts";
import { flagsOf } from "../flag-fixture.ts";
import {
  type Management,
  openManagement,
  operatorToken,
  seedProject,
} from "../management-fixture.ts";
import { dueChange } from "../schedule-due-fixture.ts";
import { restorable } from "./restorable-database.ts";

/** Tests a database that is older than the streams because it was restored while NATS kept its data. */
let management: Management;
let flags: ReturnType<typeof flagsOf>;

management = await openManagement();
const database = restorable(management.backends.database);
const project = await seedProject(management);
flags = flagsOf(management, project);
const connection = await connect({ servers: management.natsUrl });
afterAll(async () => {
  await connection.close();
  await management?.close();
  await database.drop();
});
const manager = await jetstreamManager(connection);
const logger = pino({ level: "silent" });
const broker: Broker = { connection, client: jetstream(connection), manager, replicas: 1, logger };

/** Restarts a stopped management. */
async function startAgain(): Promise<void> {
  management = await openManagement({ over: management.backends });
  flags = flagsOf(management, project);
}

/** Runs work on the database of a stopped management. */
async function withSql<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
  const url = management.backends.database.runtimeUrls.management;
  const { logger } = broker;
  const sql = connectPostgres({ url, name: "test", maxConnections: 2, logger });
  try {
    return await work(sql);
  } finally {
    await sql.end();
  }
}

/** Returns the epoch, or undefined while there is no complete snapshot. */
const epochNow = () => readEpoch(manager).catch(() => undefined);

let counter = 0;
/** Creates a flag with a new key. A restored database does not contain the later keys, so none is reused. */
const createFlag = () => flags.createFlag({ key: `flag-${++counter}` });

type Entry = { version?: number; deleted?: true; enabled?: boolean };

async function read<T>(stream: string, decode: (subject: string, text: string) => T): Promise<T[]> {
  const found: T[] = [];
  const everything = { connection, manager, stream, fromSequence: 1, pageSize: 1_000_000 };
  await readPage(everything, ({ subject, payload }) => {
    found.push(decode(subject, new TextDecoder().decode(payload)));
  });
  return found;
}

async function snapshot(): Promise<ReadonlyMap<string, Entry>> {
  const entries = await read(
    snapshotBucket.streamName,
    (subject, text) =>
      [subject.slice(snapshotBucket.subjectPrefix.length), JSON.parse(text) as Entry] as const,
  );
  return new Map(entries);
}

const entryOf = async ({ id }: { id: string }) =>
  (await snapshot()).get(`${project.organizationId}.flag.${project.environmentId}.${id}`);

const eventIds = () =>
  read(flagEventsStream.name, (_subject, text) => (JSON.parse(text) as { id: string }).id);

const keysOfSnapshot = async () => new Set((await snapshot()).keys());

/** Waits until no row is unsent, and compares the snapshot and the log with the database. */
async function expectAgreement(): Promise<void> {
  await eventually(
    async () => {
      const [row] = await management.sql`select count(*)::integer as unsent from outbox
        where sent_at is null`;
      return row?.unsent === 0;
    },
    { because: "everything is published" },
  );
  const states = await management.sql<{ key: string; version: number; enabled: boolean }[]>`
    select project.organization_id || '.flag.' || state.environment_id || '.' || flag.id as key,
      state.version::integer as version, state.content -> 'enabled' as enabled
    from flag_states as state
    join flags as flag on flag.id = state.flag_id
    join projects as project on project.id = flag.project_id`;
  const live = [...(await snapshot())].filter(
    ([key, entry]) => /\.flag\./.test(key) && !entry.deleted,
  );
  expect(
    live.map(([key, { version, enabled }]) => ({ key, version, enabled })).sort(byKey),
  ).toEqual([...states].sort(byKey));
  const events = await management.sql`select message_id as id from outbox where stream = 'events'`;
  expect((await eventIds()).sort()).toEqual(events.map(({ id }) => id).sort());
}

const byKey = (one: { key: string }, other: { key: string }) => one.key.localeCompare(other.key);

const enable = (flag: { id: string }, enabled: boolean) =>
  flags.patch(`/api/v1/flags/${flag.id}`, { enabled });

async function issueKey(): Promise<string> {
  const { status, body } = await management.call(
    `/api/v1/projects/${project.projectId}/environments/${project.environmentId}/keys`,
    {
      method: "POST",
      key: operatorToken,
      body: { kind: "client", name: "later", user_id: project.userId },
    },
  );
  expect(status).toBe(201);
  return body.id;
}

/** Backs up the database and then makes changes that the backup does not contain. */
async function diverge() {
  const [changed, deleted] = [await createFlag(), await createFlag()];
  await eventually(() => entryOf(deleted));
  await database.backUp();
  await eventually(async () => (await enable(changed, true)).status === 200);
  for (const enabled of [false, true, false]) await enable(changed, enabled);
  const created = await createFlag();
  const keyId = await issueKey();
  const path = `/api/v1/flags/${deleted.id}`;
  const gone = await management.call(path, { method: "DELETE", key: project.serverKey });
  expect(gone.status).toBe(204);
  await eventually(async () => (await entryOf(deleted))?.deleted, { because: "it is published" });
  return { changed, deleted, created, keyId };
}

/** Waits for the end of a rebuild. The bucket stays readable during it, so only the epoch shows its end. */
const expectAnotherEpoch = (epochBefore: string | undefined) =>
  eventually(async () => ![undefined, epochBefore].includes(await epochNow()), {
    because: "there is another epoch",
  });

async function expectRestored(
  { changed, deleted, created, keyId }: Awaited<ReturnType<typeof diverge>>,
  epochBefore: string | undefined,
): Promise<void> {
  await expectAnotherEpoch(epochBefore);
  expect(await entryOf(changed)).toMatchObject({ version: 1, enabled: false });
  expect(await entryOf(deleted)).toMatchObject({ version: 1, enabled: false });
  expect(await entryOf(created)).toBeUndefined();
  expect([...(await keysOfSnapshot())].filter((key) => key.endsWith(`.key.${keyId}`))).toEqual([]);
  await eventually(async () => (await enable(changed, true)).status === 200);
  expect(await entryOf(changed)).toMatchObject({ version: 2, enabled: true });
  await expectAgreement();
}

describe("given a database that is restored from a backup", () => {
  it("rebuilds the snapshot and the log when management starts", async () => {
    const changes = await diverge();
    const epoch = await readEpoch(manager);
    await management.stop();
    await database.restore();
    await startAgain();
    await expectRestored(changes, epoch);
  });

  it("rebuilds the snapshot and the log while management is running", async () => {
    const changes = await diverge();
    const epoch = await readEpoch(manager);
    await database.restore();
    await expectRestored(changes, epoch);
  });

  it("rebuilds them even if only names changed, which the snapshot does not contain", async () => {
    const flag = await createFlag();
    await expectAgreement();
    await database.backUp();
    await eventually(
      async () => (await flags.patch(`/api/v1/flags/${flag.id}`, { name: "Lost" })).status === 200,
    );
    await expectAgreement();
    const epoch = await readEpoch(manager);
    await database.restore();
    await eventually(
      async () => (await flags.patch(`/api/v1/flags/${flag.id}`, { name: "Kept" })).status === 200,
    );
    await expectAnotherEpoch(epoch);
    await expectAgreement();
  });
});

describe("given a database that loses its last commits without a lost connection", () => {
  it("rebuilds the streams even while nothing is published", async () => {
    const flag = await createFlag();
    await expectAgreement();
    const epoch = await readEpoch(manager);
    await management.sql.begin(async (tx) => {
      await tx`delete from outbox where stream = 'snapshot'
        and stream_sequence = (select max(stream_sequence) from outbox where stream = 'snapshot')`;
      await tx`update relay_streams set last_sequence = last_sequence - 1 where stream = 'snapshot'`;
    });
    await expectAnotherEpoch(epoch);
    await eventually(() => entryOf(flag));
    await expectAgreement();
  });
});

describe("given a leader that crashed between publishing and recording", () => {
  /** Removes the records of the newest messages. */
  async function removeRecords(sql: Sql, sent: "unsent" | "superseded"): Promise<void> {
    await sql.begin(async (tx) => {
      for (const stream of ["events", "snapshot"]) {
        await tx`
          update outbox set stream_sequence = null,
            sent_at = case when ${sent === "superseded" && stream === "snapshot"} then sent_at end
          where stream = ${stream} and stream_sequence > (
            select last_sequence - 2 from relay_streams where stream = ${stream})`;
        await tx`
          update relay_streams set last_sequence = last_sequence - 2 where stream = ${stream}`;
      }
    });
  }

  it.each(["unsent", "superseded"] as const)(
    "keeps the streams if the rows are %s",
    async (sent) => {
      await createFlag();
      await createFlag();
      await expectAgreement();
      const readStreams = async () => ({
        epoch: await readEpoch(manager),
        log: (await streamPosition(manager, flagEventsStream.name))?.createdAt,
      });
      const before = await readStreams();
      await management.stop();
      await withSql((sql) => removeRecords(sql, sent));
      await startAgain();
      await createFlag();
      await expectAgreement();
      expect(await readStreams()).toEqual(before);
    },
  );
});

describe("given a leader that crashes while it discards the streams", () => {
  it.each([0, 1])("leaves the rest to the next leader after %s of two streams", async (deleted) => {
    const changes = await diverge();
    const epoch = await readEpoch(manager);
    await management.stop();
    await database.restore();
    await withSql(async (sql) => {
      const lease = createLease({ sql, name: "relay", holder: uuidv4(), monotonicMs });
      await eventually(() => lease.acquire(), { because: "the former lease has ended" });
      const ahead = await findUnexplained(sql, lease, broker, testVerification());
      let left = deleted;
      const dying = discardStreams(ahead as NonNullable<typeof ahead>, {
        lease,
        broker,
        isLeading: () => left-- > 0,
      });
      await expect(dying).rejects.toThrow("the lease ended");
    });
    await startAgain();
    await expectRestored(changes, epoch);
  });

  const monotonicMs = () => performance.now();
});

describe("given queued changes that the restored database does not contain", () => {
  it("does not apply them, and applies changes that the scheduler sends afterwards", async () => {
    const flag = await createFlag();
    await eventually(() => entryOf(flag));
    await database.backUp();
    await eventually(async () => (await enable(flag, true)).status === 200);
    await enable(flag, false);
    await management.stop();
    const due = dueChange(project, flag);
    await ensureSchedule(manager, 1);
    await send(due);
    await database.restore();
    // A confirmation in a backup is valid for three seconds.
    await eventually(() => withSql(async (sql) => !(await isConfirmed(sql))));
    const epoch = await readEpoch(manager);
    await startAgain();
    await expectAnotherEpoch(epoch);
    await eventually(async () => (await queueLength()) === 0, { because: "the queue is new" });
    expect(await inboxOf(due)).toHaveLength(0);
    expect(await entryOf(flag)).toMatchObject({ version: 1, enabled: false });

    await send(due);
    await eventually(async () => (await inboxOf(due)).length === 1);
    await eventually(async () => (await entryOf(flag))?.enabled, { because: "it is applied" });
    await expectAgreement();
  });

  const isConfirmed = async (sql: Sql) => (await queueStatus(sql, "")) === "current";

  const send = (due: ScheduleDue) =>
    publishSigned(broker.client, testMessageSigner("scheduler"), {
      subject: scheduleStream.due.subject,
      payload: JSON.stringify(due),
      messageId: due.id,
    });
  const queueLength = async () =>
    (await manager.streams.info(scheduleStream.name).catch(() => undefined))?.state.messages;
  const inboxOf = ({ id }: ScheduleDue) =>
    management.sql`select from inbox where message_id = ${id}`;
});
