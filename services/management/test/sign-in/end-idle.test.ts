import { randomUUID } from "node:crypto";
import { connectPostgres } from "@halyard/postgres";
import { createTestDatabase } from "@halyard/testing";
import { afterAll, beforeEach, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import { v7 as uuidv7 } from "uuid";
import { createWriter } from "../../src/outbox/write.ts";
import { beginSession, touchSessions } from "../../src/people/sessions.ts";
import { endIdle } from "../../src/sign-in/end-idle.ts";
import { issueCode } from "../../src/sign-in/one-time-codes.ts";

/** Tests which sessions and one-time codes are removed, by the clock of the process. */
const hourMs = 60 * 60 * 1_000;
const database = await createTestDatabase();
const sql = connectPostgres({
  ...{ url: database.runtimeUrls.management, name: "test", maxConnections: 4 },
  logger: pino({ level: "silent" }),
});
const writer = createWriter({ sql, newId: uuidv7, wakeRelay: () => undefined });
/** The clock of the process, which no clock of the database follows. */
const start = new Date("2020-01-01T00:00:00.000Z");
let now = start;
const clock = { now: () => now, newId: uuidv7 };

beforeEach(async () => {
  now = start;
  await sql`delete from sessions`;
  await sql`delete from one_time_codes`;
});
afterAll(async () => {
  await sql.end();
  await database.drop();
});

const after = (ms: number) => new Date(start.getTime() + ms);

const sweep = (signal = new AbortController().signal) =>
  endIdle({ writer, now: clock.now }, signal);

/** Begins a session now. Returns its id. */
async function givenSession(): Promise<string> {
  const personId = uuidv7();
  await sql`insert into people (id, created_at) values (${personId}, now())`;
  const facts = { address: "127.0.0.1", userAgent: "a browser" };
  const begun = await writer((write) =>
    beginSession({ ...write, ...clock }, { personId, via: "passkey", groups: [], ...facts }),
  );
  return (begun as Awaited<ReturnType<typeof beginSession>>).session.id;
}

const givenCode = (expiresAt: Date, name: string = randomUUID()) =>
  issueCode(sql, { purpose: "invitation", content: { name }, expiresAt });

async function sessionsLeft(): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`select id from sessions order by id`;
  return rows.map(({ id }) => id);
}

async function codesLeft(): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    select content ->> 'name' as name from one_time_codes order by name`;
  return rows.map(({ name }) => name);
}

/** Returns whether every service receives the end of a session. */
async function isEnded(sessionId: string): Promise<boolean> {
  const [entry] = await sql<{ content: string }[]>`
    select content from people_entries where key = ${`session.${sessionId}`}`;
  return JSON.parse(entry?.content ?? "{}").deleted === true;
}

/** Moves the end of an unused session, as a use of the session does. */
const use = (sessionId: string) =>
  writer(async (write) => {
    await touchSessions({ ...write, ...clock }, [sessionId]);
    return {};
  });

describe("given sessions that were last used at different times", () => {
  it("ends exactly those that were not used for twelve hours, on every service", async () => {
    const [unused, used] = [await givenSession(), await givenSession()];
    now = after(hourMs);
    await use(used);
    now = after(12 * hourMs - 1);
    await sweep();
    expect(await sessionsLeft()).toEqual([unused, used]);
    now = after(12 * hourMs);
    await sweep();
    expect(await sessionsLeft()).toEqual([used]);
    expect([await isEnded(unused), await isEnded(used)]).toEqual([true, false]);
  });

  it("removes the row of a session after seven days, however often it is used", async () => {
    const id = await givenSession();
    for (let hours = 6; hours < 7 * 24; hours += 6) {
      now = after(hours * hourMs);
      await use(id);
    }
    now = after(7 * 24 * hourMs - 1);
    await sweep();
    expect(await sessionsLeft()).toEqual([id]);
    now = after(7 * 24 * hourMs);
    await sweep();
    expect(await sessionsLeft()).toEqual([]);
  });
});

describe("given one-time codes", () => {
  it("removes exactly those that have expired", async () => {
    await givenCode(after(1_000), "first");
    await givenCode(after(1_001), "second");
    now = after(999);
    await sweep();
    expect(await codesLeft()).toEqual(["first", "second"]);
    now = after(1_000);
    await sweep();
    expect(await codesLeft()).toEqual(["second"]);
  });

  it("removes all of them in batches", async () => {
    await Promise.all(Array.from({ length: 1_001 }, () => givenCode(after(1_000))));
    await givenCode(after(1_001), "unexpired");
    now = after(1_000);
    await sweep();
    expect(await codesLeft()).toEqual(["unexpired"]);
  });

  it("removes none after the process has begun to stop", async () => {
    await givenCode(after(1_000), "expired");
    now = after(1_000);
    await sweep(AbortSignal.abort());
    expect(await codesLeft()).toEqual(["expired"]);
  });
});
