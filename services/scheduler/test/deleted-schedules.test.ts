import { createKeyDirectory, followDirectory } from "@halyard/api-keys";
import { everythingFilter } from "@halyard/contracts";
import { connectNats } from "@halyard/jetstream";
import {
  deletedProjectInSnapshot,
  eventually,
  keyInSnapshot,
  testSignatures,
} from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { pino } from "pino";
import { createFlagDirectory, partOfFlags } from "../src/directory/flag-directory.ts";
import { settle } from "../src/dispatch/dispatch-store.ts";
import { createCancelOnDeletion } from "../src/schedules/deleted-schedules.ts";
import { cancelOfFlags, endSchedules } from "../src/schedules/schedule-store.ts";
import {
  makeTenant,
  openScheduler,
  type Replica,
  type Scheduler,
  type Tenant,
} from "./scheduler-fixture.ts";

/** Deletion of flags concurrently with other changes of their schedules. */
let scheduler: Scheduler;
let replicas: Replica[];
let tenant: Tenant;

beforeAll(async () => {
  scheduler = await openScheduler();
  tenant = makeTenant();
  await scheduler.bucket.rewrite(tenant.entries);
  replicas = [await scheduler.startReplica(), await scheduler.startReplica()];
  for (const replica of replicas) await eventually(() => replica.hasKey(tenant.serverKey));
});
afterAll(() => scheduler?.close());

const first = () => replicas[0] as Replica;
const hourMs = 3_600_000;
const inHours = (hours: number) => new Date(Date.now() + hours * hourMs).toISOString();

async function scheduledFlags(count: number, body: object) {
  const flags = Array.from({ length: count }, () => tenant.flag());
  await scheduler.bucket.put(...flags.map(({ entry }) => entry));
  await eventually(() => replicas.every((replica) => flags.every(replica.hasFlag)));
  for (const flag of flags) {
    const set = await first().call(flag.path, { method: "POST", key: tenant.serverKey, body });
    expect(set.status).toBe(201);
  }
  return flags;
}

type Flag = ReturnType<Tenant["flag"]>;

const statesOf = (flags: readonly Flag[]) => scheduler.admin<
  { status: string; latest: boolean; states: string[] }[]
>`
  select status, latest, (
    select array_agg(state order by due_at) from scheduled_changes as change
    where change.schedule_id = schedule.id
  ) as states
  from schedules as schedule
  where flag_id = any(${flags.map(({ flagId }) => flagId)}::uuid[])`;

/** The outcome of a change that was applied now. */
const applied = ({ id, scheduleId }: { id: string; scheduleId: string }) => ({
  ...{ id, schedule_id: scheduleId, outcome: "applied" as const, reason: null },
  applied_at: new Date().toISOString(),
});

describe("many concurrently deleted flags", () => {
  it("have their schedules cancelled by every replica, in any order of arrival", async () => {
    const flags = await scheduledFlags(60, { enable_at: inHours(1), disable_at: inHours(2) });
    const scopes = flags.map(({ flagId, environmentId }) => ({ flagId, environmentId }));
    await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        cancelOfFlags(first().sql, index % 2 === 0 ? scopes : scopes.toReversed()),
      ),
    );
    for (const { status, latest, states } of await statesOf(flags))
      expect({ status, latest, states }).toEqual({
        status: "cancelled",
        latest: false,
        states: ["cancelled", "cancelled"],
      });
  });
});

describe("a flag that is deleted while the outcome of a change is recorded", () => {
  it("leaves each schedule ended in the state of its last change", async () => {
    const flags = await scheduledFlags(100, { enable_at: inHours(1), disable_at: inHours(2) });
    await scheduler.admin`
      update scheduled_changes set state = 'sent'
      where state = 'armed' and flag_id = any(${flags.map(({ flagId }) => flagId)}::uuid[])`;
    const sent = await scheduler.admin<{ id: string; scheduleId: string; flagId: string }[]>`
      select id, schedule_id as "scheduleId", flag_id as "flagId" from scheduled_changes
      where state = 'sent'`;
    const { sql } = first();
    const settleOne = async ({ id, scheduleId }: { id: string; scheduleId: string }) => {
      const [settled] = await settle(sql, [applied({ id, scheduleId })]);
      if (!settled?.effect) await endSchedules(sql, [scheduleId]);
    };
    await Promise.all(
      sent.map(async (change) => {
        const flag = flags.find(({ flagId }) => flagId === change.flagId) as Flag;
        await Promise.all([settleOne(change), cancelOfFlags(sql, [flag])]);
      }),
    );
    for (const { status, states } of await statesOf(flags))
      expect({ status, states }).toEqual({ status: "cancelled", states: ["applied", "cancelled"] });
  });
});

describe("a scheduler that crashes after it recorded the first change of a window", () => {
  it("has armed the second change", async () => {
    const flags = await scheduledFlags(1, { enable_at: inHours(1), disable_at: inHours(2) });
    const [change] = await scheduler.admin<[{ id: string; scheduleId: string }]>`
      update scheduled_changes set state = 'sent'
      where state = 'armed' and flag_id = ${flags[0]?.flagId as string}
      returning id, schedule_id as "scheduleId"`;
    await settle(first().sql, [applied(change)]);
    const [schedule] = await statesOf(flags);
    expect(schedule?.states).toEqual(["applied", "armed"]);
  });
});

describe("a deletion that a scheduler reads after an interruption", () => {
  it("is left to the sweep, because a restored database may have the flag", async () => {
    const [restored, known] = [tenant.flag(), tenant.flag()];
    const logger = pino({ level: "silent" });
    const server = { url: scheduler.natsUrl };
    const connection = await connectNats({ nats: server, name: "test", logger });
    const keys = createKeyDirectory(testSignatures());
    const flags = createFlagDirectory({ now: Date.now, hasEnded: keys.hasEnded });
    const [deleted, onCurrent] = [[] as string[], jest.fn()];
    const followed = followDirectory({
      ...{ connection, keys, filter: everythingFilter, onCurrent, logger },
      parts: [partOfFlags(flags, ({ flagId }) => void deleted.push(flagId))],
    });
    await followed.ready;
    await scheduler.bucket.put(restored.entry, known.entry);
    await eventually(() => [restored, known].every((flag) => flags.statusOf(flag) === "exists"));
    // After the reconnect, the follower waits before its next attempt.
    const lost = eventually(() => !followed.isCurrent());
    await connection.reconnect();
    await lost;
    await scheduler.bucket.put(restored.deleted);
    await eventually(followed.isCurrent);
    expect(flags.statusOf(restored)).toBe("deleted");
    expect(onCurrent).toHaveBeenCalledTimes(2);
    await scheduler.bucket.put(known.deleted);
    await eventually(() => deleted.includes(known.flagId));
    expect(deleted).toEqual([known.flagId]);
    await followed.stop();
    await connection.close();
  });
});

describe("a deleted environment", () => {
  it("has no schedules and no working keys, unless its deletion is forged", async () => {
    const deleted = makeTenant();
    const elsewhere = keyInSnapshot({ ...deleted, environmentId: deleted.otherEnvironmentId });
    await scheduler.bucket.put(...deleted.entries, elsewhere.entry);
    const flag = deleted.flag();
    await scheduler.bucket.put(flag.entry);
    await eventually(() => replicas.every((replica) => replica.hasKey(deleted.serverKey)));
    await eventually(() => first().hasKey(elsewhere.text) && first().hasFlag(flag));
    // Due later than the sweep, which leaves schedules whose change was sent.
    const body = { enable_at: inHours(10), disable_at: inHours(11) };
    const options = { method: "POST", key: deleted.serverKey, body };
    expect((await first().call(flag.path, options)).status).toBe(201);
    const [, deletion] = deletedProjectInSnapshot(deleted);
    await scheduler.bucket.putPayload(deletion, JSON.stringify(deletion.value));
    // These entries arrive after the forged deletion, so it has been processed when they are loaded.
    const [kept] = (await scheduledFlags(1, body)) as [Flag];
    expect(replicas.every((replica) => replica.hasKey(deleted.serverKey))).toBe(true);

    await scheduler.bucket.put(deletion, ...deleted.entries);
    await eventually(() => replicas.every((replica) => !replica.hasKey(deleted.serverKey)));
    expect((await first().call(flag.path, options)).status).toBe(401);
    const other = { ...options, key: elsewhere.text };
    expect((await first().call(flag.path, other)).status).toBe(404);
    expect((await first().call("/api/v1/schedules", { key: elsewhere.text })).body).toEqual({
      schedules: [],
      next_cursor: null,
    });

    expect(await statesOf([flag])).toHaveLength(1);
    await scheduler.stepClock(2 * hourMs);
    await eventually(async () => (await statesOf([flag])).length === 0);
    expect(await statesOf([kept])).toHaveLength(1);
  });
});

describe("a missed deletion", () => {
  it("cancels the schedule in a sweep, but the absence of a flag does not", async () => {
    const flags = await scheduledFlags(3, { enable_at: inHours(10) });
    const [gone, kept, missing] = flags as [Flag, Flag, Flag];
    await scheduler.bucket.rewrite([...tenant.entries, gone.deleted, kept.entry]);
    await eventually(() => !first().hasFlag(missing));
    await scheduler.stepClock(4 * hourMs);
    await eventually(async () => (await statesOf([gone]))[0]?.status === "cancelled");
    for (const { status } of await statesOf([kept, missing])) expect(status).toBe("pending");
  });

  it("is left to the sweep if it arrives during an outage, which may end with a restore", async () => {
    const refused = Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
    let attempts = 0;
    const begin = async () => {
      attempts += 1;
      throw refused;
    };
    const sql = { begin } as unknown as Replica["sql"];
    const cancelling = createCancelOnDeletion({ sql, logger: pino({ level: "silent" }) });
    for (let index = 0; index < 2_000; index += 1) cancelling.deleted(tenant.flag());
    await new Promise(setImmediate);
    expect(attempts).toBe(1);
    await cancelling.stop();
  });
});
