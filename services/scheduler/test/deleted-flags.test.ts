import { randomUUID } from "node:crypto";
import { createKeyDirectory } from "@halyard/api-keys";
import { connectNats } from "@halyard/jetstream";
import { deletedProjectInSnapshot, eventually, testSignatures } from "@halyard/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { pino } from "pino";
import { createFlagDirectory, followDirectory } from "../src/directory/flag-directory.ts";
import { settle } from "../src/dispatch/dispatch-store.ts";
import { createSchedulesOfDeletedFlags } from "../src/schedules/deleted-flags.ts";
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
afterEach(() => void jest.useRealTimers());
afterAll(() => scheduler?.close());

const first = () => replicas[0] as Replica;
const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();

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
      const settled = await settle(sql, {
        id,
        schedule_id: scheduleId,
        outcome: "applied",
        applied_at: new Date().toISOString(),
        reason: null,
      });
      if (!settled?.then) await endSchedules(sql, [scheduleId]);
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
    await settle(first().sql, {
      id: change.id,
      schedule_id: change.scheduleId,
      outcome: "applied",
      applied_at: new Date().toISOString(),
      reason: null,
    });
    const [schedule] = await statesOf(flags);
    expect(schedule?.states).toEqual(["applied", "armed"]);
  });
});

describe("a deletion that a scheduler reads after an interruption", () => {
  it("is not reported, because a restored database may have the flag", async () => {
    const [restored, known] = [tenant.flag(), tenant.flag()];
    const logger = pino({ level: "silent" });
    const server = { url: scheduler.natsUrl };
    const connection = await connectNats({ nats: server, name: "test", logger });
    const flags = createFlagDirectory({ now: Date.now });
    const [deleted, current] = [[] as string[], jest.fn()];
    const followed = followDirectory({
      connection,
      keys: createKeyDirectory(testSignatures()),
      flags,
      deletedEnvironments: {
        apply: () => undefined,
        resume: () => undefined,
        beginReplacing: () => ({ take: () => undefined, finish: () => undefined }),
      },
      onFlagsGone: { deleted: ({ flagId }) => void deleted.push(flagId), current },
      logger,
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
    expect(current).toHaveBeenCalledTimes(2);
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
    await scheduler.bucket.put(...deleted.entries);
    const flag = deleted.flag();
    await scheduler.bucket.put(flag.entry);
    await eventually(() => replicas.every((replica) => replica.hasKey(deleted.serverKey)));
    await eventually(() => first().hasFlag(flag));
    const body = { enable_at: inHours(1), disable_at: inHours(2) };
    const options = { method: "POST", key: deleted.serverKey, body };
    expect((await first().call(flag.path, options)).status).toBe(201);
    const [projectDeletion, deletion] = deletedProjectInSnapshot(deleted);
    await scheduler.bucket.putPayload(deletion, JSON.stringify(deletion.value));
    // These entries arrive after the forged deletion, so it has been processed when they are loaded.
    const [kept] = (await scheduledFlags(1, body)) as [Flag];
    expect(replicas.every((replica) => replica.hasKey(deleted.serverKey))).toBe(true);
    await scheduler.bucket.put(projectDeletion, deletion, ...deleted.entries);
    await eventually(async () => (await statesOf([flag])).length === 0);
    expect(await statesOf([kept])).toHaveLength(1);
    await eventually(() => replicas.every((replica) => !replica.hasKey(deleted.serverKey)));
    expect((await first().call(flag.path, options)).status).toBe(401);
  });
});

describe("a missed deletion", () => {
  it("cancels even a schedule that was just set", async () => {
    const [gone, kept] = (await scheduledFlags(2, { enable_at: inHours(1) })) as [Flag, Flag];
    await scheduler.bucket.rewrite([...tenant.entries, gone.deleted, kept.entry]);
    await eventually(async () => (await statesOf([gone]))[0]?.status === "cancelled");
    expect((await statesOf([kept]))[0]?.status).toBe("pending");
  });

  it("is not inferred from a directory that no longer follows the snapshot", async () => {
    const [flag] = (await scheduledFlags(1, { enable_at: inHours(1) })) as [Flag];
    await scheduler.admin`update schedules set created_at = created_at - interval '1 hour'`;
    const lookedUp: string[] = [];
    const checked = Promise.withResolvers<void>();
    const gone = createSchedulesOfDeletedFlags({
      sql: first().sql,
      flags: {
        statusOf: ({ flagId }) => {
          lookedUp.push(flagId);
          return "unknown";
        },
      },
      directoryIsCurrent: () => {
        checked.resolve();
        return false;
      },
      snapshotIsSettled: async () => true,
      checkAfterMs: [0],
      logger: pino({ level: "silent" }),
    });
    gone.current();
    await checked.promise;
    await gone.stop();
    expect(lookedUp).toEqual([]);
    expect((await statesOf([flag]))[0]?.status).toBe("pending");
  });

  it("is not inferred while the snapshot is being rebuilt", async () => {
    const [restored] = (await scheduledFlags(1, { enable_at: inHours(1) })) as [Flag];
    const checked = Promise.withResolvers<void>();
    const gone = createSchedulesOfDeletedFlags({
      sql: first().sql,
      flags: { statusOf: () => "deleted" },
      directoryIsCurrent: () => true,
      snapshotIsSettled: async () => {
        checked.resolve();
        return false;
      },
      checkAfterMs: [0],
      logger: pino({ level: "silent" }),
    });
    gone.current();
    await checked.promise;
    await gone.stop();
    expect((await statesOf([restored]))[0]?.status).toBe("pending");
  });

  it("is inferred from the snapshot that management rebuilds after a restore, not from the old one", async () => {
    jest.useFakeTimers({ doNotFake: ["nextTick", "setImmediate", "queueMicrotask"] });
    const statuses: string[] = [];
    let snapshot = "old";
    const checked = Promise.withResolvers<void>();
    const gone = createSchedulesOfDeletedFlags({
      sql: oneScheduledFlag(),
      flags: {
        statusOf: () => {
          statuses.push(snapshot);
          checked.resolve();
          return "exists";
        },
      },
      directoryIsCurrent: () => true,
      snapshotIsSettled: async () => true,
      logger: pino({ level: "silent" }),
    });
    gone.current();
    jest.advanceTimersByTime(20_000);
    snapshot = "rebuilt";
    gone.current();
    jest.advanceTimersByTime(30_000);
    jest.useRealTimers();
    await checked.promise;
    await gone.stop();
    expect(statuses).toEqual(["rebuilt"]);
  });

  it("is inferred no sooner than 30 s after an outage of PostgreSQL", async () => {
    jest.useFakeTimers({ doNotFake: ["nextTick", "setImmediate", "queueMicrotask"] });
    const flagsWithSchedules = oneScheduledFlag();
    let checks = 0;
    const sql = (async ([text]: TemplateStringsArray) => {
      // A fragment of a statement.
      if (text === "") return [];
      checks += 1;
      if (checks === 1) throw connectionRefused();
      return flagsWithSchedules``;
    }) as unknown as Replica["sql"];
    const gone = createSchedulesOfDeletedFlags({
      sql,
      flags: { statusOf: () => "exists" },
      directoryIsCurrent: () => true,
      snapshotIsSettled: async () => true,
      logger: pino({ level: "silent" }),
    });
    gone.current();
    await advance(30_000);
    expect(checks).toBe(1);
    await advance(29_000);
    expect(checks).toBe(1);
    await advance(2_000);
    expect(checks).toBe(2);
    jest.useRealTimers();
    await gone.stop();
  });

  it("is left to a later check if it arrives during an outage, which may end with a restore", async () => {
    jest.useFakeTimers({ doNotFake: ["nextTick", "setImmediate", "queueMicrotask"] });
    const flagsWithSchedules = oneScheduledFlag();
    let cancellations = 0;
    let checks = 0;
    const sql = Object.assign(
      async ([text]: TemplateStringsArray) => {
        if (text === "") return [];
        checks += 1;
        return flagsWithSchedules``;
      },
      {
        async begin() {
          cancellations += 1;
          if (cancellations === 1) throw connectionRefused();
        },
      },
    ) as unknown as Replica["sql"];
    const gone = createSchedulesOfDeletedFlags({
      sql,
      // The rebuilt snapshot has the flag.
      flags: { statusOf: () => "exists" },
      directoryIsCurrent: () => true,
      snapshotIsSettled: async () => true,
      logger: pino({ level: "silent" }),
    });
    gone.deleted({ flagId: randomUUID(), environmentId: randomUUID() });
    await advance(29_000);
    expect({ cancellations, checks }).toEqual({ cancellations: 1, checks: 0 });
    await advance(2_000);
    expect({ cancellations, checks }).toEqual({ cancellations: 1, checks: 1 });
    jest.useRealTimers();
    await gone.stop();
  });

  const connectionRefused = () => Object.assign(new Error("refused"), { code: "ECONNREFUSED" });

  async function advance(ms: number): Promise<void> {
    await jest.advanceTimersByTimeAsync(ms);
    for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
  }

  function oneScheduledFlag(): Replica["sql"] {
    const [flagId, environmentId] = [randomUUID(), randomUUID()];
    return (async () => [{ flagId, environmentId, isNew: false }]) as unknown as Replica["sql"];
  }
});
