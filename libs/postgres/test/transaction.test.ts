import { randomUUID } from "node:crypto";
import { Socket } from "node:net";
import { connectAsSuperuser, createTestDatabase, startNatsProxy } from "@halyard/testing";
import { afterAll, describe, expect, it, jest } from "@jest/globals";
import { pino } from "pino";
import { connectPostgres } from "../src/connect.ts";
import { isOutage } from "../src/failures.ts";
import type { Statements } from "../src/statements.ts";

const logger = pino({ level: "silent" });

/** Text of a client after which its connection is lost, before the server's response arrives. */
let lostAfter: string | undefined;
/** If true, the server receives a misspelt `begin`. */
let isBeginMisspelt = false;

const database = await createTestDatabase();
const observer = connectAsSuperuser(database.adminUrl, "management");
const address = new URL(database.runtimeUrls.management);
const proxy = await startNatsProxy(address.href, (client, server) => {
  client.on("data", (sent) => {
    const misspelt = () => Buffer.from(sent.toString("latin1").replace("begin", "begim"), "latin1");
    const data = isBeginMisspelt ? misspelt() : sent;
    if (lostAfter !== undefined && data.includes(lostAfter)) {
      server.unpipe(client);
      server.once("data", () => client.destroy()).resume();
    }
    server.write(data);
  });
});
address.port = new URL(proxy.url).port;
const sql = connectPostgres({ url: address.href, name: "transaction", maxConnections: 1, logger });
afterAll(async () => {
  await sql.end();
  await proxy.close();
  await observer.end();
  await database.drop();
});

const insert = (tx: Statements, name: string) =>
  tx`insert into leases (name, holder, expires_at) values (${name}, ${randomUUID()}, now())`;

const isStored = async (name: string) =>
  (await observer`select from leases where name = ${name}`).length === 1;

const backend = async () => (await sql`select pg_backend_pid() as pid`)[0]?.pid;

describe("a transaction", () => {
  it("commits after its work, including statements that the work did not await", async () => {
    const result = await sql.begin(async (tx) => {
      void insert(tx, "first");
      void insert(tx, "second");
      return "done";
    });
    expect(result).toBe("done");
    expect([await isStored("first"), await isStored("second")]).toEqual([true, true]);
  });

  it("sends statements that it does not await in one write", async () => {
    await backend();
    const writes = [
      jest.spyOn(Socket.prototype, "_write"),
      jest.spyOn(Socket.prototype, "_writev"),
    ];
    await sql.begin(async (tx) => {
      void tx`select 1 as one`;
      void tx`select 2 as two`;
    });
    const sockets = writes.flatMap(({ mock }) => mock.contexts as Socket[]);
    for (const write of writes) write.mockRestore();
    const port = Number(new URL(proxy.url).port);
    expect(sockets.filter(({ remotePort }) => remotePort === port)).toHaveLength(1);
  });

  it("rejects with the error of a failed statement that the work ignored", async () => {
    const swallowing = sql.begin(async (tx) => {
      await insert(tx, "swallowed");
      await insert(tx, "swallowed").catch(() => undefined);
      return "done";
    });
    await expect(swallowing).rejects.toMatchObject({
      name: "PostgresError",
      code: "23505",
      constraint: "leases_pkey",
    });
    expect(await isStored("swallowed")).toBe(false);
  });

  it("rejects with the error of a failed statement that the work did not await", async () => {
    const unawaited = sql.begin(async (tx) => {
      void insert(tx, "unawaited");
      void insert(tx, "unawaited");
    });
    await expect(unawaited).rejects.toMatchObject({ code: "23505" });
    expect(await isStored("unawaited")).toBe(false);
  });

  it("rejects with the first error, even if the work awaits only a later statement", async () => {
    const later = sql.begin(async (tx) => {
      await insert(tx, "cause");
      void insert(tx, "cause").catch(() => undefined);
      await tx`select 1`;
    });
    await expect(later).rejects.toMatchObject({ code: "23505" });
  });

  it("sends no statement after a BEGIN that failed", async () => {
    isBeginMisspelt = true;
    const failing = sql.begin(async (tx) => {
      await tx`select 1`;
      await insert(tx, "without a transaction").catch(() => undefined);
    });
    await expect(failing).rejects.toMatchObject({ code: "42601" });
    isBeginMisspelt = false;
    expect(await isStored("without a transaction")).toBe(false);
  });

  it("rejects if the work ignores the error of an undefined parameter", async () => {
    const missing = undefined as unknown as string;
    const ignoring = sql.begin(async (tx) => {
      await insert(tx, "incomplete");
      await insert(tx, missing).catch(() => undefined);
    });
    await expect(ignoring).rejects.toThrow("is undefined");
    expect(await isStored("incomplete")).toBe(false);
  });

  it.each([
    ["is undefined", undefined],
    [
      "cannot be converted",
      {
        toPostgres() {
          throw new Error("as intended");
        },
      },
    ],
  ])(
    "does not commit after an unawaited statement with a parameter that %s",
    async (_why, value) => {
      const unsent = sql.begin(async (tx) => {
        await insert(tx, "unsent");
        void insert(tx, value as unknown as string).catch(() => undefined);
      });
      await expect(unsent).rejects.toThrow(TypeError);
      expect(await isStored("unsent")).toBe(false);
    },
  );

  it("rolls back if its work rejects, and reuses the connection", async () => {
    const before = await backend();
    const failing = sql.begin(async (tx) => {
      await insert(tx, "rejected");
      throw new Error("as intended");
    });
    await expect(failing).rejects.toThrow("as intended");
    expect(await isStored("rejected")).toBe(false);
    expect(await backend()).toBe(before);
  });

  it("rejects statements after its end", async () => {
    const ended = await sql.begin(async (tx) => () => tx`select 1`);
    await expect(ended()).rejects.toThrow("The transaction is over.");
  });

  it("rejects with an outage and discards the connection if it is lost during the commit", async () => {
    const before = await backend();
    lostAfter = "commit";
    const lost = sql.begin((tx) => insert(tx, "lost"));
    const failure = await lost.then(
      () => undefined,
      (error: unknown) => error,
    );
    lostAfter = undefined;
    expect(isOutage(failure)).toBe(true);
    expect(await backend()).not.toBe(before);
  });
});
