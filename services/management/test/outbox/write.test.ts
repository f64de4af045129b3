import type { FlagEvent } from "@halyard/contracts";
import { connectPostgres } from "@halyard/postgres";
import { connectAsSuperuser, createTestDatabase } from "@halyard/testing";
import { afterAll, beforeEach, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import { v7 as uuidv7 } from "uuid";
import type { OutboxMessage } from "../../src/outbox/outbox-message.ts";
import { createWriter } from "../../src/outbox/write.ts";

/** For each wake-up of the relay, the number of unsent rows at that time. */
let woken: Promise<number>[];
let expected: (readonly number[])[];
let forgotten: (readonly number[])[];
let wait: () => Promise<void>;

beforeEach(async () => {
  await sql`delete from outbox`;
  [woken, expected, forgotten] = [[], [], []];
  wait = async () => undefined;
});

const failingKey = "fails";

const database = await createTestDatabase();
const url = database.runtimeUrls.management;
const sql = connectPostgres({
  url,
  name: "test",
  maxConnections: 2,
  logger: pino({ level: "silent" }),
});
afterAll(async () => {
  await sql.end();
  await database.drop();
});
await failCommitsOf(failingKey);
const write = createWriter({
  sql,
  newId: uuidv7,
  wakeRelay: () => void woken.push(unsent()),
  effects: {
    expect: (ids) => {
      expected.push(ids);
      return { wait: () => wait(), forget: () => void forgotten.push(ids) };
    },
    interrupt: () => undefined,
  },
});

/** Makes the commit of a row for this key fail after the insert succeeded. */
async function failCommitsOf(keyId: string): Promise<void> {
  const admin = connectAsSuperuser(database.adminUrl, "management");
  await admin`
    create function fail_commit() returns trigger language plpgsql
    as $$ begin raise exception 'the commit fails'; end $$`;
  await admin.unsafe(`
    create constraint trigger fail_commit after insert on outbox
    deferrable initially deferred for each row
    when (new.subject like '%.key.${keyId}') execute function fail_commit()`);
  await admin.end();
}

async function unsent(): Promise<number> {
  const [row] = await sql`select count(*)::integer as rows from outbox where sent_at is null`;
  return row?.rows;
}

const message = (keyId: string): OutboxMessage => ({
  stream: "snapshot",
  address: { kind: "key", organizationId: "an-organization", keyId },
  value: { deleted: true, version: 1, committed_at: "2026-01-01T00:00:00.000Z" },
});
const done = { done: true };
const rejected = { rejected: "NOT_FOUND_001", message: "No such flag." } as const;

describe("a write with messages", () => {
  it("wakes the relay after the commit", async () => {
    await write(async ({ publish }) => {
      publish([message("one"), message("two")]);
      return done;
    });
    expect(await Promise.all(woken)).toEqual([2]);
  });

  it("waits for its rows, and forgets them afterwards", async () => {
    wait = async () => expect(forgotten).toEqual([]);
    await write(async ({ publish }) => {
      publish([message("one")]);
      publish([message("two")]);
      return done;
    });
    expect(expected).toHaveLength(1);
    expect(expected[0]).toHaveLength(2);
    expect(forgotten).toEqual(expected);
  });

  it("does not wait for events", async () => {
    const event = { id: uuidv7(), event: "flag.updated" } as FlagEvent;
    await write(async ({ publish }) => {
      publish([{ stream: "events", event }]);
      return done;
    });
    expect(expected).toEqual([]);
    expect(woken).toHaveLength(1);
  });

  it("forgets its rows when the commit fails", async () => {
    const failing = write(async ({ publish }) => {
      publish([message(failingKey)]);
      return done;
    });
    await expect(failing).rejects.toThrow("the commit fails");
    expect(expected).toHaveLength(1);
    expect(forgotten).toEqual(expected);
    expect(woken).toEqual([]);
  });

  it("does not wake the relay when it is rejected", async () => {
    const result = await write(async ({ publish }) => {
      publish([message("one")]);
      return rejected;
    });
    expect(result).toEqual(rejected);
    expect(woken).toEqual([]);
    expect(await unsent()).toBe(0);
  });
});
