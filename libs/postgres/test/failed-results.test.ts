import { createTestDatabase, eventually, startNatsProxy } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import { connectPostgres, type Sql } from "../src/connect.ts";
import { isOutage } from "../src/failures.ts";

/** Statements that fail after their first rows. */
const logger = pino({ level: "silent" });

const database = await createTestDatabase();
afterAll(() => database.drop());

/** Opens a pool with one connection, so that the next statement uses the connection of the failed one. */
function connectOnce(url: string): Sql {
  return connectPostgres({ url, name: "failed-results", maxConnections: 1, logger });
}

const failure = (statement: PromiseLike<unknown>) =>
  Promise.resolve(statement).then(
    () => undefined,
    (error: unknown) => error as Error & { code?: string },
  );

const sql = connectOnce(database.runtimeUrls.management);
afterAll(() => sql.end());

describe("given a statement that fails after its first rows", () => {
  const failing = () => sql`select 1 / (3 - n) from generate_series(1, 5) as n`;
  const fine = () => sql<{ n: number }[]>`select n from generate_series(1, 2) as n`;
  const rows = [{ n: 1 }, { n: 2 }];

  it("returns exactly the rows of the next statement", async () => {
    expect((await failure(failing()))?.code).toBe("22012");
    expect([...(await fine())]).toEqual(rows);
  });

  it("returns the correct rows of pipelined statements", async () => {
    const [failed, ...results] = await Promise.all([failure(failing()), fine(), fine()]);
    expect(failed?.code).toBe("22012");
    expect(results.map((result) => [...result])).toEqual([rows, rows]);
  });

  it("reuses the connection", async () => {
    const [before] = await sql`select pg_backend_pid() as pid`;
    await failure(failing());
    expect(await sql`select pg_backend_pid() as pid`).toEqual([before]);
  });

  it("rejects the transaction with the error, and returns the rows of the next one", async () => {
    const failed = sql.begin(async (tx) => {
      await tx`select 1 / (3 - n) from generate_series(1, 5) as n`;
    });
    expect((await failure(failed))?.code).toBe("22012");
    const next = await sql.begin((tx) => tx`select n from generate_series(1, 2) as n`);
    expect([...next]).toEqual(rows);
  });
});

describe("given a connection that is lost after the first rows of a result", () => {
  const closing: (() => Promise<void>)[] = [];
  afterAll(async () => {
    for (const close of closing) await close();
  });

  it("returns exactly the rows of the next statement", async () => {
    const address = new URL(database.runtimeUrls.management);
    let passedBytes = 0;
    const proxy = await startNatsProxy(address.href, (client, server) => {
      client.pipe(server);
      server.on("data", (data: Buffer) => {
        passedBytes += data.length;
      });
    });
    address.port = new URL(proxy.url).port;
    const sql = connectOnce(address.href);
    closing.push(() => sql.end(), proxy.close);
    // The first row is larger than the buffer of the server, which sends most of it before the statement ends. In
    // PostgreSQL 15, the rest waits in the buffer.
    const interrupted = failure(sql`
      select repeat('x', 100000) as text, case when n = 2 then pg_sleep(60) end
      from generate_series(1, 2) as n`);
    await eventually(() => passedBytes, { until: (bytes) => bytes > 50_000 });
    proxy.closeConnections();
    expect(isOutage(await interrupted)).toBe(true);
    expect([...(await sql`select n from generate_series(1, 2) as n`)]).toEqual([
      { n: 1 },
      { n: 2 },
    ]);
  });
});
