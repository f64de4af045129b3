import type { Socket } from "node:net";
import { createTestDatabase, eventually, startNatsProxy } from "@halyard/testing";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import { connectPostgres, type Sql } from "../src/connect.ts";
import { isOutage } from "../src/failures.ts";

/** A proxy that stops forwarding, as if the server's machine had lost power. The connections stay open. */
const maxConnections = 2;
const maxSilenceMs = 500;

let isSilent = false;
/** Text of a client after which the proxy is silent. */
let silentFrom: string | undefined;
/** Data that clients have sent while the proxy was silent. */
let dropped = "";

const database = await createTestDatabase();
const address = new URL(database.runtimeUrls.management);
const forward = (client: Socket, server: Socket) => {
  client.on("data", (data) => {
    if (silentFrom !== undefined && data.includes(silentFrom)) isSilent = true;
    if (isSilent) dropped += data.toString("latin1");
    else server.write(data);
  });
};
const proxy = await startNatsProxy(address.href, forward);
address.port = new URL(proxy.url).port;
const url = address.href;
const settings = { url, maxConnections, logger: pino({ level: "silent" }), maxSilenceMs };
const sql = connectPostgres({ ...settings, name: "silent" });
afterAll(async () => {
  await proxy.close();
  await sql.end();
  await database.drop();
});

const failure = (statement: Promise<unknown>) =>
  statement.then(
    () => undefined,
    (error: unknown) => error,
  );

const useAll = () => Array.from({ length: maxConnections }, () => sql`select 1 as one`);

describe("a connection to a silent server", () => {
  it("is lost, which counts as an outage, and the pool works again", async () => {
    await Promise.all(useAll());
    isSilent = true;
    const inTransaction = sql.begin(async (tx) => {
      await tx`select 1`;
    });
    const outcomes = await Promise.all([...useAll(), inTransaction].map(failure));
    expect(outcomes.map(isOutage)).toEqual(outcomes.map(() => true));
    isSilent = false;
    await eventually(async () => (await failure(Promise.all(useAll()))) === undefined);
  });

  it("keeps an idle connection open", async () => {
    const backend = async () => (await sql`select pg_backend_pid() as pid`)[0]?.pid;
    const before = await backend();
    // Another connection waits for a response, from now until its time-out, while this one is idle.
    const waiting = connectPostgres({ ...settings, name: "waiting", maxConnections: 1 });
    await waiting`select 1`;
    isSilent = true;
    expect(isOutage(await failure(waiting`select 1`))).toBe(true);
    isSilent = false;
    expect(await backend()).toBe(before);
    await waiting.end();
  });
});

describe("a listener on a silent server", () => {
  const options = { maxConnections: 1, logger: pino({ level: "silent" }) };
  let listener: Sql;
  let control: Sql;
  let listening: Promise<string>;
  let stopping: AbortController;
  beforeEach(() => {
    listener = connectPostgres({ ...options, url, name: "listener" });
    control = connectPostgres({ ...options, url, name: "control" });
  });
  afterEach(async () => {
    silentFrom = undefined;
    isSilent = false;
    proxy.closeConnections();
    await Promise.all([listener.end(), control.end()]);
  });

  function startListening(): void {
    stopping = new AbortController();
    const channels = { silent_test: () => undefined };
    listening = listener
      .listen({ channels, onListening: () => undefined, signal: stopping.signal })
      .then(() => "stopped");
  }

  it("stops without delay during its connection attempt", async () => {
    isSilent = true;
    // The time-out of this connection ends before that of the listener.
    const timedOut = failure(control`select 1`);
    startListening();
    await eventually(() => dropped.includes("listener"));
    stopping.abort();
    expect(await Promise.race([listening, timedOut])).toBe("stopped");
  });

  it("stops without delay during its first statement", async () => {
    silentFrom = "listen ";
    startListening();
    await eventually(() => isSilent);
    // The time-out of connecting is shorter than that of a statement.
    const timedOut = failure(control`select 1`);
    stopping.abort();
    expect(await Promise.race([listening, timedOut])).toBe("stopped");
  });
});

describe("the error code", () => {
  it.each(["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "57P01", "40P01", "25006", "08006"])(
    "%s is an outage",
    (code) => expect(isOutage({ code })).toBe(true),
  );

  it.each(["23505", "42601", "22001", "ENOENT", "EACCES"])("%s is not an outage", (code) =>
    expect(isOutage({ code })).toBe(false),
  );
});
