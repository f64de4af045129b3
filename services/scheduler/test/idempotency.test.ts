import { eventually } from "@halyard/testing";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { cleanUp } from "../src/clean-up.ts";
import { makeTenant, openScheduler, type Replica, type Tenant } from "./scheduler-fixture.ts";

/** Setting schedules with an `Idempotency-Key`, by clients that retry because they may have lost the response. */

const scheduler = await openScheduler();
afterAll(() => scheduler.close());
const tenant = makeTenant();
await scheduler.bucket.put(...tenant.entries);
const replicas: Replica[] = [await scheduler.startReplica(), await scheduler.startReplica()];
afterEach(() => scheduler?.stepClock(0));

type Flag = ReturnType<Tenant["flag"]>;

async function newFlag(): Promise<Flag> {
  const flag = tenant.flag();
  await scheduler.bucket.put(flag.entry);
  await eventually(() => replicas.every((replica) => replica.hasFlag(flag)));
  return flag;
}

const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();

let requests = 0;

/** Sends requests to the replicas in turn. */
function post(flag: Flag, body: unknown, idempotencyKey?: string, key = tenant.serverKey) {
  const headers = idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey };
  requests += 1;
  const replica = replicas[requests % replicas.length] as Replica;
  return replica.call(flag.path, { method: "POST", key, body, headers });
}

const latest = async (flag: Flag) =>
  (await replicas[0]?.call(flag.path, { key: tenant.serverKey }))?.body;

const count = async (flag: Flag) => {
  const [row] = await scheduler.admin`
    select count(*)::int as count from schedules where flag_id = ${flag.flagId}`;
  return row?.count;
};

describe("a request that is repeated with its Idempotency-Key", () => {
  it("returns the first response, and sets nothing", async () => {
    const flag = await newFlag();
    const body = { enable_at: inHours(1), disable_at: inHours(2) };
    const first = await post(flag, body, "once");
    const second = await post(flag, body, "once");
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(second.body).toEqual(first.body);
    expect(second.headers.get("location")).toBe(flag.path);
    expect(await count(flag)).toBe(1);
  });

  it("sets one schedule when many are sent concurrently", async () => {
    const flag = await newFlag();
    const body = { enable_at: inHours(1) };
    const answers = await Promise.all([1, 2, 3, 4, 5, 6].map(() => post(flag, body, "at once")));
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201, 201]);
    expect(new Set(answers.map((answer) => answer.body.id)).size).toBe(1);
    expect(await count(flag)).toBe(1);
  });

  it("leaves a later schedule of another request unchanged", async () => {
    const flag = await newFlag();
    const body = { enable_at: inHours(1) };
    const first = await post(flag, body, "overtaken");
    const { body: theirs } = await post(flag, { disable_at: inHours(3) });
    expect((await post(flag, body, "overtaken")).body).toEqual(first.body);
    expect((await latest(flag)).id).toBe(theirs.id);
  });

  it("returns the first response even after its times have passed", async () => {
    const flag = await newFlag();
    const body = { enable_at: inHours(1) };
    const first = await post(flag, body, "too late");
    await scheduler.stepClock(2 * 3_600_000);
    expect((await post(flag, body, "too late")).body).toEqual(first.body);
  });

  it("returns the first response even after the flag was deleted", async () => {
    const flag = await newFlag();
    const body = { enable_at: inHours(1) };
    const first = await post(flag, body, "flag is gone");
    await scheduler.bucket.put(flag.deleted);
    await eventually(() => replicas.every((replica) => !replica.hasFlag(flag)));
    expect((await post(flag, body, "flag is gone")).body).toEqual(first.body);
    expect((await post(flag, body, "another")).status).toBe(404);
  });

  it("returns the response of the first request, which waits for a change in progress", async () => {
    const flag = await newFlag();
    const { body: due } = await post(flag, { enable_at: inHours(1) });
    await scheduler.admin`update scheduled_changes set state = 'sent' where schedule_id = ${due.id}`;
    // Rows of rolled back transactions are counted too.
    const attempts = async () => {
      const [row] = await scheduler.admin`
        select n_tup_ins::int as count from pg_stat_user_tables
        where schemaname = 'scheduler' and relname = 'idempotency_keys'`;
      return row?.count as number;
    };
    const before = await attempts();
    const body = { disable_at: inHours(2) };
    const waiting = [post(flag, body, "waits"), post(flag, body, "waits")];
    await eventually(async () => (await attempts()) > before + 1);
    await scheduler.admin`
      update scheduled_changes set state = 'applied', applied_at = now()
      where schedule_id = ${due.id}`;
    const answers = await Promise.all(waiting);
    expect(answers.map(({ status }) => status)).toEqual([201, 201]);
    expect(answers[1]?.body).toEqual(answers[0]?.body);
    expect(await count(flag)).toBe(2);
  });
});

describe("an Idempotency-Key", () => {
  it("is rejected with another body, and for another flag", async () => {
    const [flag, other] = [await newFlag(), await newFlag()];
    const body = { enable_at: inHours(1) };
    expect((await post(flag, body, "taken")).status).toBe(201);
    const rejected = await post(flag, { enable_at: inHours(2) }, "taken");
    expect(rejected.status).toBe(409);
    expect(rejected.body.error.code).toBe("CONFLICT_001");
    expect((await post(other, body, "taken")).status).toBe(409);
    expect(await count(other)).toBe(0);
  });

  it("is separate for each API key", async () => {
    const flag = await newFlag();
    const body = { enable_at: inHours(1) };
    const mine = await post(flag, body, "shared");
    const theirs = await post(flag, body, "shared", tenant.environmentOnlyKey);
    expect([mine.status, theirs.status]).toEqual([201, 201]);
    expect(theirs.body.id).not.toBe(mine.body.id);
  });

  it("expires after a day, and its row is deleted", async () => {
    const flag = await newFlag();
    const rows = async () => (await scheduler.admin`select from idempotency_keys`).count;
    await scheduler.admin`delete from idempotency_keys`;
    await post(flag, { enable_at: inHours(1) }, "yesterday");
    await post(flag, { enable_at: inHours(2) }, "today");
    await scheduler.admin`
      update idempotency_keys set created_at = created_at - interval '25 hours'
      where idempotency_key = 'yesterday'`;
    expect((await post(flag, { enable_at: inHours(3) }, "yesterday")).status).toBe(201);
    await scheduler.admin`
      update idempotency_keys set created_at = created_at - interval '25 hours'
      where idempotency_key = 'yesterday'`;
    await cleanUp((replicas[0] as Replica).sql);
    expect(await rows()).toBe(1);
  });

  it("stores the response encrypted", async () => {
    const flag = await newFlag();
    const { body } = await post(flag, { enable_at: inHours(1) }, "sealed");
    const [row] = await scheduler.admin`
      select encode(answer, 'escape') as answer from idempotency_keys
      where idempotency_key = 'sealed'`;
    expect(row?.answer.length).toBeGreaterThan(100);
    expect(row?.answer).not.toContain(body.id);
  });
});
