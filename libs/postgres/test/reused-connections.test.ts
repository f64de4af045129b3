import { connectAsSuperuser, createTestDatabase, eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import { connectPostgres } from "../src/connect.ts";
import { isOutage } from "../src/failures.ts";
import type { Statements } from "../src/statements.ts";

/** Failures after which a connection is reused or discarded. */
const database = await createTestDatabase();
const admin = connectAsSuperuser(database.adminUrl, "management");
/** A pool with one connection, so that the next statement uses it if it is reused. */
const sql = connectPostgres({
  url: database.runtimeUrls.management,
  name: "kept",
  maxConnections: 1,
  logger: pino({ level: "silent" }),
});
afterAll(async () => {
  await sql.end();
  await admin.end();
  await database.drop();
});

const backend = async () => (await sql`select pg_backend_pid() as pid`)[0]?.pid;

describe("given a statement that the server ended after a time-out", () => {
  beforeAll(async () => {
    await sql.unprepared("set statement_timeout = '20ms'");
  });
  afterAll(() => sql.unprepared("set statement_timeout = '15s'"));

  it("reuses the connection", async () => {
    const before = await backend();
    await expect(sql`select pg_sleep(60)`).rejects.toMatchObject({ code: "57014" });
    expect(await backend()).toBe(before);
  });

  it("rolls back a transaction and reuses its connection", async () => {
    const before = await backend();
    await expect(sql.begin((tx) => tx`select pg_sleep(60)`)).rejects.toMatchObject({
      code: "57014",
    });
    expect(await backend()).toBe(before);
    expect((await sql`select`).count).toBe(1);
  });
});

describe("given a transaction that the server ended because of a deadlock", () => {
  const lock = (tx: Statements, name: string) =>
    tx`select from leases where name = ${name} for update`;

  it("reuses the connection", async () => {
    const before = await backend();
    for (const name of ["first", "second"])
      await sql`insert into leases (name, holder, expires_at)
        values (${name}, '00000000-0000-4000-8000-000000000000', now())`;
    let other: Promise<unknown> | undefined;
    const deadlocked = sql.begin(async (tx) => {
      await lock(tx, "first");
      other = admin.begin(async (held) => {
        // With this setting, only the transaction under test detects the deadlock.
        await held`set local deadlock_timeout = '1h'`;
        await held`select from leases where name = 'second' for update`;
        await held`select from leases where name = 'first' for update`;
      });
      await eventually(async () => {
        const waiting = await admin`
          select from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'`;
        return waiting.length === 1;
      });
      await lock(tx, "second");
    });
    await expect(deadlocked).rejects.toMatchObject({ code: "40P01" });
    await other;
    expect(await backend()).toBe(before);
  });
});

describe("given a server that became read-only, as during a failover", () => {
  it.each([
    ["alone", () => sql`update leases set expires_at = expires_at`],
    ["in a transaction", () => sql.begin((tx) => tx`update leases set expires_at = expires_at`)],
  ])("rejects a write %s with an outage, and opens another connection", async (_where, write) => {
    const before = await backend();
    await sql.unprepared("set default_transaction_read_only = on");
    const failure = await write().then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(failure).toMatchObject({ code: "25006" });
    expect(isOutage(failure)).toBe(true);
    expect(await backend()).not.toBe(before);
    await write();
  });
});

describe("given a prepared statement whose result columns a migration has changed", () => {
  beforeAll(async () => {
    await admin`create table things (first integer)`;
    await admin`grant select on things to public`;
    await admin`insert into things values (1)`;
  });

  it.each([
    ["alone", "second", () => sql`select * from things`],
    ["in a transaction", "third", () => sql.begin((tx) => tx`select * from things`)],
  ])(
    "fails with an outage %s, and is prepared again on the next connection",
    async (_where, column, read) => {
      const before = Object.keys((await read())[0] ?? {});
      await admin.unsafe(`alter table things add column ${column} integer`);
      const failure = await read().then(
        () => undefined,
        (error: unknown) => error,
      );
      expect(failure).toMatchObject({ code: "0A000" });
      expect(isOutage(failure)).toBe(true);
      expect(Object.keys((await read())[0] ?? {})).toEqual([...before, column]);
    },
  );
});

describe("given statements that wait for a connection when the pool is closed", () => {
  it("rejects them with an outage, and completes running statements", async () => {
    const closing = connectPostgres({
      url: database.runtimeUrls.management,
      name: "closing",
      maxConnections: 1,
      logger: pino({ level: "silent" }),
    });
    const work = Promise.withResolvers<void>();
    const began = Promise.withResolvers<void>();
    const running = closing.begin(async (tx) => {
      await tx`select 1`;
      began.resolve();
      await work.promise;
      return tx`select 2 as two`;
    });
    await began.promise;
    const waiting = [closing`select 1`, closing.begin((tx) => tx`select 1`)];
    const closed = closing.end();
    for (const outcome of await Promise.allSettled([...waiting, closing`select 1`])) {
      expect(outcome).toMatchObject({ status: "rejected", reason: { name: "PoolClosedError" } });
      expect(outcome.status === "rejected" && isOutage(outcome.reason)).toBe(true);
    }
    work.resolve();
    expect([...(await running)]).toEqual([{ two: 2 }]);
    await closed;
  });
});
