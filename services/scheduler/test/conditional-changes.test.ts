import { eventually } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { startFakeManagement } from "./fake-management.ts";
import { makeTenant, openScheduler, type Replica, type Tenant } from "./scheduler-fixture.ts";

/** Conditional changes of schedules, by several people at the same time. */

const scheduler = await openScheduler();
afterAll(() => scheduler.close());
const tenant = makeTenant();
await scheduler.bucket.put(...tenant.entries);
const replicas: Replica[] = [await scheduler.startReplica(), await scheduler.startReplica()];

type Flag = ReturnType<Tenant["flag"]>;
type Headers = Record<string, string>;

async function newFlag(): Promise<Flag> {
  const flag = tenant.flag();
  await scheduler.bucket.put(flag.entry);
  await eventually(() => replicas.every((replica) => replica.hasFlag(flag)));
  return flag;
}

let requests = 0;
/** Sends requests to the replicas in turn. */
function send(method: string, flag: Flag, options: { body?: object; headers?: Headers } = {}) {
  requests += 1;
  const replica = replicas[requests % replicas.length] as Replica;
  return replica.call(flag.path, { method, key: tenant.serverKey, ...options });
}
const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
const set = (flag: Flag, headers: Headers = {}, body: object = { enable_at: inHours(1) }) =>
  send("POST", flag, { body, headers });
const clear = (flag: Flag, headers: Headers) => send("DELETE", flag, { headers });
const latest = (flag: Flag) => send("GET", flag);

const onlyIf = (id: string) => ({ "if-match": `"${id}"` });
const ifNone = { "if-none-match": "*" };

/** The rows of a flag, which must not change after a 412. */
const rowsOf = async ({ flagId }: Flag) => [
  await scheduler.admin`select * from schedules where flag_id = ${flagId} order by id`,
  await scheduler.admin`select * from scheduled_changes where flag_id = ${flagId} order by id`,
  await scheduler.admin`select id, message from audit_outbox where message->>'flag_id' = ${flagId} order by id`,
];

/** Does work while no request can read or replace the pending schedule of a flag. */
const whileLocked = ({ flagId, environmentId }: Flag, work: () => Promise<void>) =>
  scheduler.admin.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(hashtextextended(${`${flagId}.${environmentId}`}, 0))`;
    await work();
  });
const untilLockIsAwaited = () =>
  eventually(async () => {
    const locks = await scheduler.admin`
      select from pg_locks where locktype = 'advisory' and not granted`;
    return locks.length > 0;
  });

const untilChangeIsAwaited = () =>
  eventually(async () => {
    const waiting = await scheduler.admin`
      select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`;
    return waiting.length > 0;
  });

const statusesOf = (answers: { status: number }[]) => answers.map(({ status }) => status).sort();

describe("the ETag of a schedule", () => {
  it("is its id", async () => {
    const flag = await newFlag();
    const created = await set(flag);
    expect(created.headers.get("etag")).toBe(`"${created.body.id}"`);
    expect((await latest(flag)).headers.get("etag")).toBe(`"${created.body.id}"`);
  });
});

describe("a change with If-Match", () => {
  it("replaces or clears the pending schedule with this id", async () => {
    const flag = await newFlag();
    const { body: first } = await set(flag);
    const { status, body: second } = await set(flag, onlyIf(first.id));
    expect(status).toBe(201);
    expect((await clear(flag, onlyIf(second.id))).status).toBe(204);
    expect((await latest(flag)).body).toMatchObject({ id: second.id, status: "cancelled" });
  });

  const changes = [
    { name: "setting", change: set },
    { name: "clearing", change: clear },
  ];

  it.each(changes)("changes nothing if another schedule is pending: $name", async ({ change }) => {
    const flag = await newFlag();
    const { body: theirs } = await set(flag);
    const before = await rowsOf(flag);
    const rejected = await change(flag, onlyIf(uuidv7()));
    expect(rejected.status).toBe(412);
    expect(rejected.headers.get("etag")).toBe(`"${theirs.id}"`);
    expect(rejected.body.error).toMatchObject({
      code: "CONFLICT_003",
      message: `If-Match does not name the pending schedule of ${flag.path}, which is "${theirs.id}". Read that again, then send the request again.`,
    });
    expect(await rowsOf(flag)).toEqual(before);
  });

  it.each(changes)("changes nothing if none is pending: $name", async ({ change }) => {
    const flag = await newFlag();
    const { body: cleared } = await set(flag);
    await clear(flag, {});
    const before = await rowsOf(flag);
    for (const headers of [onlyIf(cleared.id), { "if-match": "*" }]) {
      const rejected = await change(flag, headers);
      expect(rejected.status).toBe(412);
      expect(rejected.headers.get("etag")).toBeNull();
      expect(rejected.body.error.message).toContain("because there is none");
    }
    expect(await rowsOf(flag)).toEqual(before);
  });

  it.each(changes)(
    "is rejected if the schedule was applied meanwhile: $name",
    async ({ change }) => {
      const management = await startFakeManagement(scheduler.natsUrl);
      try {
        const flag = await newFlag();
        const { body: soon } = await set(flag);
        await scheduler.stepClock(3_600_000);
        await eventually(async () => (await latest(flag)).body.status === "applied");
        await scheduler.stepClock(0);
        expect((await change(flag, onlyIf(soon.id))).status).toBe(412);
        expect((await latest(flag)).body).toMatchObject({ id: soon.id, status: "applied" });
      } finally {
        await management.stop();
      }
    },
  );

  it("is rejected if the last change of the schedule, which is in progress, is applied", async () => {
    const flag = await newFlag();
    const { body: due } = await set(flag);
    await scheduler.admin`update scheduled_changes set state = 'sent' where schedule_id = ${due.id}`;
    const requests: ReturnType<typeof set>[] = [];
    await whileLocked(flag, async () => {
      requests.push(set(flag, onlyIf(due.id)));
      await untilLockIsAwaited();
    });
    // The first attempt found the change in progress. The second one shows that the request waits for its end.
    await whileLocked(flag, async () => {
      await untilLockIsAwaited();
      await scheduler.admin`
        update scheduled_changes set state = 'applied', applied_at = now()
        where schedule_id = ${due.id}`;
    });
    const [rejected] = await Promise.all(requests);
    expect(rejected?.status).toBe(412);
    expect((await latest(flag)).body.id).toBe(due.id);
  });

  it.each(changes)(
    "is rejected if another replica sends its change at the same time, and that is applied: $name",
    async ({ change }) => {
      const flag = await newFlag();
      const { body: due } = await set(flag);
      const requests: ReturnType<typeof change>[] = [];
      await scheduler.admin.begin(async (tx) => {
        // As the claim of due changes, this locks the change until its commit.
        await tx`update scheduled_changes set state = 'sent' where schedule_id = ${due.id}`;
        requests.push(change(flag, onlyIf(due.id)));
        await untilChangeIsAwaited();
      });
      await scheduler.admin`
        update scheduled_changes set state = 'applied', applied_at = now()
        where schedule_id = ${due.id} and state = 'sent'`;
      const [rejected] = await Promise.all(requests);
      expect(rejected?.status).toBe(412);
      expect((await latest(flag)).body.id).toBe(due.id);
    },
  );

  it("replaces a window after its first change was applied", async () => {
    const flag = await newFlag();
    const window = { enable_at: inHours(1), disable_at: inHours(2) };
    const { body } = await set(flag, {}, window);
    await scheduler.admin`
      update scheduled_changes set state = 'applied', applied_at = now()
      where schedule_id = ${body.id} and action = 'enable'`;
    expect((await set(flag, onlyIf(body.id))).status).toBe(201);
  });

  it("wins over all others with the same id that are made concurrently", async () => {
    const flag = await newFlag();
    const { body } = await set(flag);
    const answers = await Promise.all([1, 2, 3, 4, 5, 6].map(() => set(flag, onlyIf(body.id))));
    expect(statusesOf(answers)).toEqual([201, 412, 412, 412, 412, 412]);
    const won = answers.find(({ status }) => status === 201);
    expect((await latest(flag)).body).toEqual(won?.body);
  });

  it("with an Idempotency-Key returns its first response again", async () => {
    const flag = await newFlag();
    const { body } = await set(flag);
    const times = { enable_at: inHours(3) };
    const headers = { ...onlyIf(body.id), "idempotency-key": "conditional" };
    const first = await set(flag, headers, times);
    const second = await set(flag, headers, times);
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(second.body).toEqual(first.body);
    expect(second.headers.get("etag")).toBe(first.headers.get("etag"));
  });

  it("with an Idempotency-Key that was rejected can be repeated upon the present schedule", async () => {
    const flag = await newFlag();
    const { body } = await set(flag);
    const times = { enable_at: inHours(3) };
    const key = { "idempotency-key": "rejected" };
    expect((await set(flag, { ...onlyIf(uuidv7()), ...key }, times)).status).toBe(412);
    expect((await set(flag, { ...onlyIf(body.id), ...key }, times)).status).toBe(201);
  });
});

describe("a schedule that is set with If-None-Match: *", () => {
  it("is set if none is pending, also after one that has ended", async () => {
    const flag = await newFlag();
    expect((await set(flag, ifNone)).status).toBe(201);
    await clear(flag, {});
    expect((await set(flag, ifNone)).status).toBe(201);
  });

  it("changes nothing if one is pending", async () => {
    const flag = await newFlag();
    const { body } = await set(flag);
    const before = await rowsOf(flag);
    const rejected = await set(flag, ifNone);
    expect(rejected.status).toBe(412);
    expect(rejected.headers.get("etag")).toBe(`"${body.id}"`);
    expect(rejected.body.error).toMatchObject({
      code: "CONFLICT_003",
      message: `If-None-Match names the pending schedule of ${flag.path}, which is "${body.id}". Read that again, then send the request again.`,
    });
    expect(await rowsOf(flag)).toEqual(before);
  });

  it("wins over all others that are set concurrently", async () => {
    const flag = await newFlag();
    const answers = await Promise.all([1, 2, 3, 4, 5, 6].map(() => set(flag, ifNone)));
    expect(statusesOf(answers)).toEqual([201, 412, 412, 412, 412, 412]);
  });
});
