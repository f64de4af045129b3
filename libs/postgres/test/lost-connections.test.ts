import { createTestDatabase, eventually, type TestDatabase } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import postgres from "postgres";
import { connectPostgres, type Sql } from "../src/connect.ts";
import { isOutage } from "../src/failures.ts";

/** Connections that PostgreSQL closes while they are in use, as it does when it restarts. */
const logger = pino({ level: "silent" });
const maxConnections = 4;
const callers = 12;

describe("given connections that are ended again and again", () => {
  let database: TestDatabase;
  let admin: postgres.Sql;
  let sql: Sql;
  beforeAll(async () => {
    database = await createTestDatabase();
    admin = postgres(database.adminUrl, { max: 1, onnotice: () => undefined });
    sql = connectPostgres({
      url: database.runtimeUrls.management,
      name: "lost",
      maxConnections,
      logger,
    });
  });
  afterAll(async () => {
    await sql.end();
    await admin.end();
    await database.drop();
  });

  const endAll = () => admin`
    select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'lost'`;

  /** Whether the statement came back with its own answer; a lost connection is no answer. */
  async function askInTransaction(number: number): Promise<boolean> {
    try {
      const answers = await sql.begin(async (tx) => {
        const [first] = await tx`select ${number}::integer as number`;
        const [[second], [third]] = await Promise.all([
          tx`select ${number}::integer + 1 as number, pg_sleep(0.002)`,
          tx`select ${number}::integer + 2 as number`,
        ]);
        return [first?.number, second?.number, third?.number];
      });
      expect(answers).toEqual([number, number + 1, number + 2]);
      return true;
    } catch (error) {
      if (isOutage(error)) return false;
      throw error;
    }
  }

  async function askAlone(number: number): Promise<boolean> {
    try {
      const [row] = await sql`select ${number}::integer as number`;
      expect(row?.number).toBe(number);
      return true;
    } catch (error) {
      if (isOutage(error)) return false;
      throw error;
    }
  }

  it("gives every statement its own answer or an outage, and goes on with all of them", async () => {
    let going = true;
    let answered = 0;
    let lost = 0;
    const work = async (caller: number) => {
      for (let turn = 0; going; turn += 1) {
        const number = caller * 1_000_000 + turn * 10;
        const ask = turn % 3 === 0 ? askAlone : askInTransaction;
        if (await ask(number)) answered += 1;
        else lost += 1;
      }
    };
    const working = Promise.all(Array.from({ length: callers }, (_, caller) => work(caller)));
    try {
      for (let round = 0; round < 25; round += 1) {
        const before = answered;
        await Promise.race([
          eventually(() => answered > before + callers, { because: "the pool answers again" }),
          working,
        ]);
        await endAll();
      }
    } finally {
      going = false;
    }
    await working;
    expect(lost).toBeGreaterThan(0);
    const all = await Promise.all(Array.from({ length: 50 }, (_, number) => askAlone(number)));
    expect(all).toEqual(all.map(() => true));
  });

  it("ends a transaction that was waiting for something else, and goes on with the others", async () => {
    const nextStatements: Promise<unknown>[] = [];
    const over = Promise.withResolvers<void>();
    const lost = Array.from({ length: maxConnections }, () =>
      sql.begin(async (tx) => {
        await tx`select 1`;
        await over.promise;
        const next = Promise.resolve().then(() => tx`select 2`);
        nextStatements.push(next.catch((error: unknown) => error));
        await next;
      }),
    );
    const ended = Promise.allSettled(lost);
    // Between `begin` and its first statement a transaction is idle, too.
    await eventually(async () => {
      const idle = await admin`
        select from pg_stat_activity
        where application_name = 'lost' and state = 'idle in transaction' and query = 'select 1'`;
      return idle.length === maxConnections;
    });
    await endAll();
    await eventually(async () => {
      const left = await admin`
        select from pg_stat_activity where application_name = 'lost' and query = 'select 1'`;
      return left.length === 0;
    });
    over.resolve();
    for (const outcome of await ended)
      expect(outcome.status === "rejected" && isOutage(outcome.reason)).toBe(true);
    expect(await askAlone(1)).toBe(true);
    await eventually(() => nextStatements.length === maxConnections);
    for (const next of nextStatements) expect(isOutage(await next)).toBe(true);
    expect(await askInTransaction(1)).toBe(true);
  });

  it("receives notifications again, and reads again, when the listening connection was lost", async () => {
    const received: string[] = [];
    let scans = 0;
    const stopping = new AbortController();
    const listening = sql.listen({
      channels: { lost_test: (payload) => received.push(payload) },
      onListening: () => {
        scans += 1;
      },
      signal: stopping.signal,
    });
    await eventually(() => scans === 1);
    await endAll();
    await eventually(() => scans === 2);
    await admin`select pg_notify('lost_test', 'after')`;
    await eventually(() => received.length > 0);
    expect(received).toEqual(["after"]);
    stopping.abort();
    await listening;
  });

  it("says that PostgreSQL is away while nothing listens there", async () => {
    const url = new URL(database.runtimeUrls.management);
    url.port = "1";
    const nowhere = connectPostgres({ url: url.href, name: "nowhere", maxConnections: 1, logger });
    for (let attempt = 0; attempt < 3; attempt += 1) {
      const failure = await nowhere`select 1`.then(
        () => undefined,
        (error: unknown) => error,
      );
      expect(isOutage(failure)).toBe(true);
    }
    await nowhere.end();
  });
});
