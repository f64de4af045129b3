import { createTestDatabase, eventually } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import postgres from "postgres";
import { connectPostgres } from "../src/connect.ts";
import { isOutage } from "../src/failures.ts";

/** Connections that PostgreSQL closes while they are in use, as during a restart. */
const logger = pino({ level: "silent" });
const maxConnections = 4;
const callers = 12;

const database = await createTestDatabase();
const admin = postgres(database.adminUrl, { max: 1, onnotice: () => undefined });
const sql = connectPostgres({
  url: database.runtimeUrls.management,
  name: "lost",
  maxConnections,
  logger,
});
afterAll(async () => {
  await sql.end();
  await admin.end();
  await database.drop();
});

describe("given connections that are terminated repeatedly", () => {
  const endAll = () => admin`
    select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'lost'`;

  /** Checks the results of a transaction. Returns false for an outage. */
  async function queryInTransaction(number: number): Promise<boolean> {
    try {
      const results = await sql.begin(async (tx) => {
        const [first] = await tx`select ${number}::integer as number`;
        const [[second], [third]] = await Promise.all([
          tx`select ${number}::integer + 1 as number, pg_sleep(0.002)`,
          tx`select ${number}::integer + 2 as number`,
        ]);
        return [first?.number, second?.number, third?.number];
      });
      expect(results).toEqual([number, number + 1, number + 2]);
      return true;
    } catch (error) {
      if (isOutage(error)) return false;
      throw error;
    }
  }

  async function queryAlone(number: number): Promise<boolean> {
    try {
      const [row] = await sql`select ${number}::integer as number`;
      expect(row?.number).toBe(number);
      return true;
    } catch (error) {
      if (isOutage(error)) return false;
      throw error;
    }
  }

  it("returns the correct result of every statement or an outage, and keeps working", async () => {
    let isRunning = true;
    let succeeded = 0;
    let lost = 0;
    const work = async (caller: number) => {
      for (let turn = 0; isRunning; turn += 1) {
        const number = caller * 1_000_000 + turn * 10;
        const query = turn % 3 === 0 ? queryAlone : queryInTransaction;
        if (await query(number)) succeeded += 1;
        else lost += 1;
      }
    };
    const working = Promise.all(Array.from({ length: callers }, (_, caller) => work(caller)));
    try {
      for (let round = 0; round < 25; round += 1) {
        const before = succeeded;
        await Promise.race([
          eventually(() => succeeded > before + callers, { because: "the pool works again" }),
          working,
        ]);
        await endAll();
      }
    } finally {
      isRunning = false;
    }
    await working;
    expect(lost).toBeGreaterThan(0);
    const all = await Promise.all(Array.from({ length: 50 }, (_, number) => queryAlone(number)));
    expect(all).toEqual(all.map(() => true));
  });

  it("rejects a transaction that was idle, and keeps working", async () => {
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
    // The query distinguishes this state from that between `begin` and the first statement.
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
    expect(await queryAlone(1)).toBe(true);
    await eventually(() => nextStatements.length === maxConnections);
    for (const next of nextStatements) expect(isOutage(await next)).toBe(true);
    expect(await queryInTransaction(1)).toBe(true);
  });

  it("listens again after the loss of the listening connection, and reports it", async () => {
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

  it("reports an outage if no server listens at the address", async () => {
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
