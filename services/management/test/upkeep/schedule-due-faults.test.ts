import { randomUUID } from "node:crypto";
import { scheduleStream } from "@halyard/contracts";
import { eventually } from "@halyard/testing";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { DiscardPolicy } from "@nats-io/jetstream";
import postgres from "postgres";
import { cleanUp } from "../../src/upkeep/clean-up.ts";
import { flagsOf } from "../flag-fixture.ts";
import { openManagement, seedProject } from "../management-fixture.ts";
import { dueChange, openScheduler } from "../schedule-due-fixture.ts";

/** Tests due changes with invalid messages, database failures, and crashes of the previous consumer. */

const management = await openManagement();
const project = await seedProject(management);
const flags = flagsOf(management, project);
const scheduler = await openScheduler(management);
const admin = postgres(management.adminUrl, { max: 4, onnotice: () => undefined });
afterAll(async () => {
  await scheduler.close();
  await admin.end({ timeout: 1 });
  await management.close();
});

/** Returns the number of entries, events and versions after the creation. Each change adds one to all of them. */
async function changesOf(flag: { id: string }) {
  const answer = await management.call(`/api/v1/flags/${flag.id}`, { key: project.serverKey });
  return {
    entries: (await flags.historyOf(flag.id)).length - 1,
    events: (await flags.eventsOf(flag.id)).length - 1,
    versions: answer.body.version - 1,
  };
}
const unchanged = { entries: 0, events: 0, versions: 0 };
const changedOnce = { entries: 1, events: 1, versions: 1 };

/** Returns the PIDs of management's PostgreSQL connections that wait for a lock. */
const waitingForALock = async () => {
  const rows = await admin<{ pid: number }[]>`
    select pid from pg_stat_activity
    where datname = current_database() and usename = 'management_service'
      and wait_event_type = 'Lock'`;
  return rows.map(({ pid }) => pid);
};

const eventuallyWaiting = (count: number) =>
  eventually(
    async () => {
      const pids = await waitingForALock();
      return pids.length >= count && pids;
    },
    { because: "management waits for a lock" },
  );

/** Holds the locks that `work` takes until `commit` or `rollBack`, at the latest until the end of the test. */
async function hold(work: (tx: postgres.TransactionSql) => Promise<unknown>) {
  const toCommit = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const holding = admin.begin(async (tx) => {
    await work(tx);
    held.resolve();
    await toCommit.promise;
  });
  holding.catch(held.reject);
  await held.promise;
  const commit = async () => {
    toCommit.resolve();
    await holding;
  };
  releases.push(commit);
  const rollBack = async () => {
    releases.splice(releases.indexOf(commit), 1);
    toCommit.reject(new Error("rolled back"));
    await holding.catch(() => undefined);
  };
  return { commit, rollBack };
}
const releases: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const release of releases.splice(0)) await release();
});

/** Returns the number of attempts that an outage of PostgreSQL or of the broker has ended. */
async function outages() {
  const metric = await management.metrics.getSingleMetric("halyard_queue_retries_total")?.get();
  return metric?.values.find(({ labels }) => labels.cause === "outage")?.value ?? 0;
}

describe("given a process that crashed between its commit and the publication of the outcome", () => {
  it("publishes the recorded outcome and changes nothing", async () => {
    const flag = await flags.createFlag();
    const due = dueChange(project, flag);
    const outcome = { outcome: "applied", applied_at: "2026-01-01T00:00:00.000Z", reason: null };
    await admin`insert into management.inbox values (${due.id}, ${admin.json(outcome)}, now())`;
    await scheduler.send(due);
    expect(await scheduler.outcomeOf(due)).toMatchObject(outcome);
    expect(await changesOf(flag)).toEqual(unchanged);
  });
});

describe("given a process that was stopped just before its commit", () => {
  const outcome = { outcome: "applied", applied_at: "2026-01-01T00:00:00.000Z", reason: null };

  it("waits for that process and publishes its outcome if it commits", async () => {
    const flag = await flags.createFlag();
    const due = dueChange(project, flag);
    const { commit } = await hold(
      (tx) => tx`insert into management.inbox values (${due.id}, ${tx.json(outcome)}, now())`,
    );
    await scheduler.send(due);
    await eventuallyWaiting(1);
    expect(scheduler.outcomesOf(due)).toEqual([]);
    await commit();
    expect(await scheduler.outcomeOf(due)).toMatchObject(outcome);
    expect(await changesOf(flag)).toEqual(unchanged);
  });

  it("makes the change itself if that process rolls back", async () => {
    const flag = await flags.createFlag();
    const due = dueChange(project, flag);
    const { rollBack } = await hold(
      (tx) => tx`insert into management.inbox values (${due.id}, ${tx.json(outcome)}, now())`,
    );
    await scheduler.send(due);
    await eventuallyWaiting(1);
    await rollBack();
    expect(await scheduler.outcomeOf(due)).toMatchObject({ outcome: "applied" });
    expect(await changesOf(flag)).toEqual(changedOnce);
  });
});

describe("given the same message several times concurrently", () => {
  it("makes the change once", async () => {
    const flag = await flags.createFlag();
    const due = dueChange(project, flag);
    const { commit } = await hold(
      (tx) => tx`select from management.flags where id = ${flag.id} for update`,
    );
    await Promise.all([scheduler.send(due), scheduler.send(due), scheduler.send(due)]);
    await eventuallyWaiting(3);
    await commit();
    await scheduler.queueIsEmpty();
    expect(await changesOf(flag)).toEqual(changedOnce);
    const outcomes = scheduler.outcomesOf(due).map((outcome) => JSON.stringify(outcome));
    expect(new Set(outcomes).size).toBe(1);
  });
});

describe("given a PostgreSQL connection that ends during a change", () => {
  it("makes the change once, over another connection", async () => {
    const flag = await flags.createFlag();
    const due = dueChange(project, flag);
    const { commit } = await hold(
      (tx) => tx`select from management.flags where id = ${flag.id} for update`,
    );
    await scheduler.send(due);
    const [pid] = await eventuallyWaiting(1);
    await admin`select pg_terminate_backend(${pid ?? 0})`;
    await commit();
    expect(await scheduler.outcomeOf(due)).toMatchObject({ outcome: "applied" });
    expect(await changesOf(flag)).toEqual(changedOnce);
  });
});

describe("given a PostgreSQL server that rejects connections", () => {
  async function setConnectionLimit(limit: number) {
    const [row] = await admin`select current_database() as name`;
    await admin`alter database ${admin(row?.name)} connection limit ${admin.unsafe(String(limit))}`;
  }

  it("makes due changes when PostgreSQL is available again", async () => {
    const flag = await flags.createFlag();
    const due = dueChange(project, flag);
    const before = await outages();
    releases.push(() => setConnectionLimit(-1));
    await setConnectionLimit(0);
    await admin`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and usename = 'management_service'`;
    await scheduler.send(due);
    // More attempts than a message gets whose processing fails for another reason.
    await eventually(async () => (await outages()) > before + 5, { because: "it is retried" });
    expect(scheduler.outcomesOf(due)).toEqual([]);
    await setConnectionLimit(-1);
    expect(await scheduler.outcomeOf(due)).toMatchObject({ outcome: "applied" });
    expect(await changesOf(flag)).toEqual(changedOnce);
  });
});

describe("given a broker that rejects outcomes", () => {
  const setLimit = (limit: { discard: DiscardPolicy; max_msgs: number }) =>
    scheduler.manager.streams.update(scheduleStream.name, limit);
  const removeLimit = () => setLimit({ discard: DiscardPolicy.Old, max_msgs: -1 });

  it("keeps the message and publishes the outcome when the broker accepts it", async () => {
    const flag = await flags.createFlag();
    const due = dueChange(project, flag);
    await scheduler.queueIsEmpty();
    const before = await outages();
    releases.push(removeLimit);
    // The due change fills the queue.
    await setLimit({ discard: DiscardPolicy.New, max_msgs: 1 });
    await scheduler.send(due);
    await eventually(async () => (await outages()) > before, { because: "it is retried" });
    expect(scheduler.outcomesOf(due)).toEqual([]);
    await removeLimit();
    expect(await scheduler.outcomeOf(due)).toMatchObject({ outcome: "applied" });
    expect(await changesOf(flag)).toEqual(changedOnce);
  });
});

describe("given an invalid message", () => {
  it.each([
    ["invalid JSON", () => "{", '"" (the whole document) must be object'],
    ["another object", () => '{"hello":"world"}', "/id is required"],
    [
      "an unknown action",
      () => JSON.stringify({ ...dueChange(project, { id: randomUUID() }), action: "explode" }),
      '/action must be one of "enable", "disable"',
    ],
  ])("dead-letters it and makes the following change: %s", async (_what, write, reason) => {
    const text = write();
    const flag = await flags.createFlag();
    const due = dueChange(project, flag);
    await scheduler.sendBytes(text);
    await scheduler.send(due);
    expect(await scheduler.outcomeOf(due)).toMatchObject({ outcome: "applied" });
    await eventually(async () => {
      const found = (await scheduler.deadLetters()).find((message) => message.text === text);
      return found?.reason.includes(reason);
    });
  });
});

describe("given a change that management cannot make", () => {
  /** Makes every transaction that changes the flag fail, as a bug in management would. */
  async function breakHistoryOf(flag: { id: string }) {
    await admin.unsafe(`
      create function management.fail() returns trigger language plpgsql
        as $$ begin raise exception 'broken for the test'; end $$;
      create trigger broken before insert on management.history
        for each row when (new.flag_id = '${flag.id}') execute function management.fail()`);
    return () => admin.unsafe("drop function if exists management.fail cascade");
  }

  it("records it as failed, dead-letters it, and never makes it later", async () => {
    const flag = await flags.createFlag();
    const due = dueChange(project, flag);
    const repair = await breakHistoryOf(flag);
    releases.push(repair);
    await scheduler.send(due);
    expect(await scheduler.outcomeOf(due)).toMatchObject({
      outcome: "failed",
      applied_at: null,
      reason: "It could not be processed (PostgresError).",
    });
    await eventually(async () =>
      (await scheduler.deadLetters()).some(({ text }) => text.includes(due.id)),
    );
    await repair();
    await scheduler.send(due);
    await scheduler.queueIsEmpty();
    expect(await changesOf(flag)).toEqual(unchanged);
    expect(scheduler.outcomesOf(due).every(({ outcome }) => outcome === "failed")).toBe(true);
  });
});

describe("given old outcomes", () => {
  it("deletes only those older than 90 days", async () => {
    const [old, recent] = [randomUUID(), randomUUID()];
    await admin`
      insert into management.inbox values
        (${old}, '{}', now() - interval '91 days'),
        (${recent}, '{}', now() - interval '89 days')`;
    await cleanUp(management.sql, scheduler, () => true);
    const rows = await management.sql`
      select message_id from inbox where message_id in (${old}, ${recent})`;
    expect(rows.map(({ message_id }) => message_id)).toEqual([recent]);
  });
});
