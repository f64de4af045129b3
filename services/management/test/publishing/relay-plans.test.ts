import { randomUUID } from "node:crypto";
import type { Sql, Transaction } from "@halyard/postgres";
import { connectPostgres } from "@halyard/postgres";
import { connectAsSuperuser, createTestDatabase } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import {
  allUnsentRows,
  fairUnsentRows,
  readBacklog,
  type StreamName,
  unsentRange,
} from "../../src/outbox/unsent-rows.ts";
import { readFullState } from "../../src/publishing/full-state.ts";
import { createLease } from "../../src/publishing/lease.ts";
import {
  recordFound,
  recordSent,
  recordStream,
  settle,
  unknownEvents,
  unrecordedRows,
} from "../../src/publishing/records.ts";
import { visitedRows } from "../visited-rows.ts";

/**
 * Tests the plans of the relay's statements over 100,000 unsent rows, with the statistics of an empty outbox.
 * Each statement is first executed over the empty outbox until PostgreSQL may cache a generic plan.
 */
const unsent = 100_000;
const sent = 50_000;
const batch = 500;
/** Coprime to the number of kinds, so that each organization has rows of all kinds. */
const organizations = 10;
/** A prepared statement may get a generic plan from its sixth execution on. */
const planIsKeptAfter = 6;

const organizationId = randomUUID();

type Admin = ReturnType<typeof connectAsSuperuser>;

async function insertSent(admin: Admin, count: number): Promise<void> {
  await admin`
    insert into outbox (stream, message_id, subject, payload, sent_at, stream_sequence)
    select case when number % 2 = 0 then 'events' else 'snapshot' end, gen_random_uuid(),
      'old.flag.old.' || number, '{}', now(), number
    from generate_series(1, ${count}) as number`;
}

async function insertUnsent(admin: Admin): Promise<void> {
  await admin`
    insert into outbox (stream, message_id, subject, payload)
    select case when kind = 'event' then 'events' else 'snapshot' end, gen_random_uuid(),
      organization || '.' || kind || '.any.' || number % 20000,
      json_build_object('organization_id', organization)::text
    from generate_series(1, ${unsent}) as number
    cross join lateral (
      select (array['event', 'key', 'flag'])[1 + number % 3] as kind,
        'organization-' || number % ${organizations} as organization
    ) as row`;
}

type Row = { id: number; messageId: string; key: string };

/** Rows that the statements process. */
type Given = { events: Row[]; entries: Row[] };

async function readGiven(admin: Admin): Promise<Given> {
  const rowsOf = (stream: string) => admin<Row[]>`
    select id::integer, message_id as "messageId", subject as key from outbox
    where stream = ${stream} order by sent_at is null desc, id desc limit ${2 * batch}`;
  return { events: await rowsOf("events"), entries: await rowsOf("snapshot") };
}

/** Runs a statement. Returns the number of rows that it processes. */
type Work = (tx: Transaction, given: Given) => Promise<number>;

type Statement = {
  name: string;
  /** The statement searches for unsent rows. */
  isRead?: true;
  /** The statement records publications, in a leader's transaction. */
  isRecord?: true;
  work: Work;
};

/** Returns the numbers of rows of the outbox that a statement visits and processes. */
async function visitedBy({ isRecord, work }: Statement, about: Given) {
  const begin = isRecord ? lease.recordAsLeader : sql.begin;
  const { result, visited } = await visitedRows({ begin } as Pick<Sql, "begin">, "outbox", (tx) =>
    work(tx, about),
  );
  return { rows: result, visited };
}

const asSql = (tx: Transaction) => tx as unknown as Sql;

const bounds = { rows: batch, bytes: 4_000_000, afterQueue: undefined };
const unsentOf = (kind: Parameters<typeof fairUnsentRows>[1]) => async (tx: Transaction) =>
  (await fairUnsentRows(tx as never, kind, bounds)).rows.length;
/** Returns the number of visited rows. The statement visits a batch to detect that there are more rows. */
const allUnsentOf = (stream: StreamName) => async (tx: Transaction) =>
  (await allUnsentRows(tx as never, stream, bounds))?.length ?? batch;

const first = <T>(rows: readonly T[]) => rows.slice(0, batch);
const second = <T>(rows: readonly T[]) => rows.slice(batch);

const statements: Statement[] = [
  { isRead: true, name: "the selection of events", work: unsentOf("events") },
  { isRead: true, name: "the selection of keys", work: unsentOf("keys") },
  { isRead: true, name: "the selection of flags", work: unsentOf("flags") },
  { isRead: true, name: "the selection of all events", work: allUnsentOf("events") },
  { isRead: true, name: "the selection of all entries", work: allUnsentOf("snapshot") },
  {
    isRead: true,
    name: "the backlog",
    async work(tx) {
      const streams = ["events", "snapshot"] as const;
      const except = ["events organization-0"];
      return (await readBacklog(asSql(tx), { streams, except, countUpTo: 1_000 })).rows;
    },
  },
  {
    isRead: true,
    name: "the range of unsent rows",
    async work(tx) {
      await unsentRange(tx as never, "snapshot");
      // The statement returns only two rows.
      return batch;
    },
  },
  {
    isRecord: true,
    name: "the record of a batch",
    async work(tx, { entries }) {
      const rows = first(entries).map(({ id }, sequence) => ({ id, sequence }));
      const sequences = { lastSequence: 1, recordedBefore: 0, revision: undefined };
      await recordSent(tx, "snapshot", rows, sequences);
      return rows.length;
    },
  },
  {
    isRecord: true,
    name: "the record of superseded values",
    async work(tx, { entries }) {
      const rows = second(entries).map(({ id }) => ({ id, sequence: null }));
      await settle(tx, rows);
      return rows.length;
    },
  },
  {
    isRecord: true,
    name: "the record of found events",
    async work(tx, { events }) {
      const found = first(events).map(({ messageId }, sequence) => [messageId, sequence] as const);
      await recordFound(tx, new Map(found));
      return found.length;
    },
  },
  {
    name: "the search for values of found entries",
    async work(tx, { entries }) {
      const rows = await unrecordedRows(
        asSql(tx),
        second(entries).map(({ key }) => key),
      );
      return rows.length;
    },
  },
  {
    name: "the search for unknown events",
    async work(tx, { events }) {
      const ids = second(events).map(({ messageId }) => messageId);
      await unknownEvents(asSql(tx), ids);
      return ids.length;
    },
  },
];

const database = await createTestDatabase();
const sql = connectPostgres({
  url: database.runtimeUrls.management,
  name: "test",
  // A single connection, which caches the plans.
  maxConnections: 1,
  logger: pino({ level: "silent" }),
});
afterAll(async () => {
  await sql.end();
  await database.drop();
});
const lease = createLease({
  sql,
  name: "relay",
  holder: randomUUID(),
  monotonicMs: () => performance.now(),
});
await lease.acquire();
const admin = connectAsSuperuser(database.adminUrl, "management");
await admin`alter table outbox set (autovacuum_enabled = false)`;
// The lease must not expire while rows are inserted.
await admin`update leases set expires_at = clock_timestamp() + interval '1 hour'`;
await lease.recordAsLeader((tx) =>
  recordStream(tx, "snapshot", {
    createdAt: "",
    lastSequence: 0,
    baseSequence: 0,
  }),
);
await insertSent(admin, 4);
await admin`analyze outbox`;
const few = await readGiven(admin);
for (const statement of statements)
  for (let times = 0; times < planIsKeptAfter; times += 1) await visitedBy(statement, few);
await insertSent(admin, sent);
await insertUnsent(admin);
const given = await readGiven(admin);
await admin.end();

describe.each(statements)("$name", (statement) => {
  it("visits few rows beyond those that it processes", async () => {
    const { rows, visited } = await visitedBy(statement, given);
    expect(rows).toBeGreaterThanOrEqual(batch);
    expect(visited).toBeLessThan(3 * rows);
  });
});

describe("given statistics of a full outbox, and few unsent rows", () => {
  beforeAll(async () => {
    const admin = connectAsSuperuser(database.adminUrl, "management");
    await admin`analyze outbox`;
    await admin`update outbox set sent_at = now(), stream_sequence = 0 where sent_at is null`;
    await admin`
      insert into outbox (stream, message_id, subject, payload)
      values ('snapshot', gen_random_uuid(), 'an-organization.key.any', '{}')`;
    await admin.end();
  }, 60_000);

  it.each(statements.filter(({ isRead }) => isRead))("$name visits few rows", async (statement) => {
    expect((await visitedBy(statement, given)).visited).toBeLessThan(batch);
  });
});

describe("given flags, and no statistics of the environments", () => {
  const states = 30_000;

  beforeAll(async () => {
    const admin = connectAsSuperuser(database.adminUrl, "management");
    await admin`alter table environments set (autovacuum_enabled = false)`;
    await admin`
      insert into organizations (id, name, plan, version, created_at, updated_at)
      values (${organizationId}, 'Acme', 'growth', 1, now(), now())`;
    await admin`
      insert into projects (id, organization_id, name, created_at)
      select gen_random_uuid(), ${organizationId}, 'project-' || number, now()
      from generate_series(1, 100) as number`;
    await admin`
      insert into environments (id, project_id, name, created_at)
      select gen_random_uuid(), project.id, 'environment-' || number, now()
      from projects as project cross join generate_series(1, 3) as number`;
    await admin`
      insert into flags (id, project_id, key, name, description, type, version, last_event_at,
        created_at, updated_at)
      select gen_random_uuid(), project.id, 'flag-' || number, 'f', '', 'release', 1, now(), now(), now()
      from projects as project cross join generate_series(1, ${states / 300}) as number`;
    await admin`
      insert into flag_states (flag_id, environment_id, content, version, updated_at)
      select flag.id, environment.id,
        '{"enabled": false, "rollout_percentage": 100, "targeting_rules": []}', 1, now()
      from flags as flag join environments as environment using (project_id)`;
    await admin`analyze flags, flag_states`;
    await admin.end();
  }, 60_000);

  it("visits each state about once for all pages of the snapshot", async () => {
    const { result, visited } = await visitedRows(sql, "flag_states", async (tx) => {
      let flags = 0;
      for await (const page of readFullState(asSql(tx)))
        flags += page.filter(({ address }) => address.kind === "flag").length;
      return flags;
    });
    expect(result).toBe(states);
    expect(visited).toBeLessThan(1.5 * states);
  });
});
