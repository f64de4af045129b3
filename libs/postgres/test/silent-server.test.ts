import type { Socket } from "node:net";
import {
  createTestDatabase,
  eventually,
  startNatsProxy,
  type TestDatabase,
} from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import { connectPostgres, type Sql } from "../src/connect.ts";
import { isOutage } from "../src/failures.ts";

/** A proxy that stops forwarding, as if the server's machine had lost power. The connections stay open. */
const maxConnections = 2;
const longestSilenceMs = 500;

let database: TestDatabase;
let sql: Sql;
let isSilent = false;
let closeProxy: () => Promise<void>;

beforeAll(async () => {
  database = await createTestDatabase();
  const address = new URL(database.runtimeUrls.management);
  const forward = (client: Socket, server: Socket) => {
    client.on("data", (data) => {
      if (!isSilent) server.write(data);
    });
  };
  const proxy = await startNatsProxy(address.href, forward);
  closeProxy = proxy.close;
  address.port = new URL(proxy.url).port;
  sql = connectPostgres({
    url: address.href,
    name: "silent",
    maxConnections,
    logger: pino({ level: "silent" }),
    longestSilenceMs,
  });
});
afterAll(async () => {
  await closeProxy?.();
  await sql?.end();
  await database?.drop();
});

const failure = (asked: Promise<unknown>) =>
  asked.then(
    () => undefined,
    (error: unknown) => error,
  );

const askAll = () => Array.from({ length: maxConnections }, () => sql`select 1 as one`);

describe("a connection to a server that has fallen silent", () => {
  it("is lost, which counts as an outage, and the pool works again", async () => {
    await Promise.all(askAll());
    isSilent = true;
    const inTransaction = sql.begin(async (tx) => {
      await tx`select 1`;
    });
    const outcomes = await Promise.all([...askAll(), inTransaction].map(failure));
    expect(outcomes.map(isOutage)).toEqual(outcomes.map(() => true));
    isSilent = false;
    await eventually(async () => (await failure(Promise.all(askAll()))) === undefined);
  });

  it("keeps an idle connection open", async () => {
    const backend = async () => (await sql`select pg_backend_pid() as pid`)[0]?.pid;
    const before = await backend();
    const untilLater = performance.now() + 2 * longestSilenceMs;
    await eventually(() => performance.now() > untilLater);
    expect(await backend()).toBe(before);
  });
});

describe("what counts as an outage", () => {
  it.each(["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "57P01", "40P01", "25006", "08006"])(
    "%s does",
    (code) => expect(isOutage({ code })).toBe(true),
  );

  it.each(["23505", "42601", "22001", "ENOENT", "EACCES"])("%s does not", (code) =>
    expect(isOutage({ code })).toBe(false),
  );
});
