import { isProblem } from "@halyard/http";
import { connectPostgres, json, type Sql } from "@halyard/postgres";
import { createMetrics } from "@halyard/service";
import {
  connectAsSuperuser,
  createTestDatabase,
  eventually,
  type TestDatabase,
} from "@halyard/testing";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import type postgres from "postgres";
import { v7 as uuidv7 } from "uuid";
import { readContext } from "../../src/access/change-context.ts";
import {
  changeFlag,
  createFlag,
  type FlagAndState,
  type FlagWrite,
  removeFlag,
} from "../../src/flags/flag-changes.ts";
import { findBreaks, findMissingHeads, readHeads } from "../../src/history/verification.ts";
import { createWriter } from "../../src/outbox/write.ts";
import {
  applyRetention,
  type RetentionPeriods,
  startRetention,
} from "../../src/upkeep/retention.ts";

/** Tests the retention of history entries, audit entries and ended keys. */
const dayMs = 24 * 60 * 60 * 1_000;
const daysAgo = (days: number) => new Date(Date.now() - days * dayMs);

let database: TestDatabase;
let runtime: Sql;
let admin: postgres.Sql;
let ids: { organizationId: string; projectId: string; userId: string; environmentId: string };
/** The clock for changes. Retention uses the database's clock. */
let now: Date;

const newId = () => uuidv7({ msecs: now.getTime() });

beforeEach(async () => {
  database = await createTestDatabase();
  const url = database.runtimeUrls.management;
  runtime = connectPostgres({ url, name: "test", maxConnections: 4, logger: silent });
  admin = connectAsSuperuser(database.adminUrl, "management");
  now = new Date();
  const [organizationId, projectId, userId, environmentId] = [newId(), newId(), newId(), newId()];
  ids = { organizationId, projectId, userId, environmentId };
  await admin`insert into organizations values (${organizationId}, 'Acme', 'pro', 1, now(), now())`;
  await admin`insert into users values (${userId}, ${organizationId}, 'ada@example.com', 'Ada', now())`;
  await admin`insert into projects values (${projectId}, ${organizationId}, 'Web', now())`;
  await admin`insert into environments values (${environmentId}, ${projectId}, 'production', now())`;
});
afterEach(async () => {
  await Promise.all([runtime.end(), admin.end()]);
  await database.drop();
});

const silent = pino({ level: "silent" });
const writer = () => createWriter({ sql: runtime, newId, wakeRelay: () => undefined });

function retain(periods: Partial<RetentionPeriods>) {
  const options = { auditDays: undefined, endedKeyDays: undefined, ...periods };
  return applyRetention(
    { sql: runtime, writer: writer(), periods: options, now: () => new Date() },
    () => true,
  );
}

async function committed<T extends object>(
  work: (write: FlagWrite) => Promise<T | object>,
): Promise<T> {
  const author = { userId: ids.userId, apiKeyId: null, via: "schedule" as const };
  const clock = { now: () => now, newId };
  const done = await runtime.begin(async (tx) =>
    work({
      ...{
        tx,
        publish: () => undefined,
        countMessages: () => undefined,
        doNotAwait: () => undefined,
        ...clock,
      },
      beforeCommit: (send: () => Promise<unknown>) => void send(),
      context: () => readContext(tx, { author, cause: "manual" }, clock),
    }),
  );
  if (isProblem(done as object)) throw new Error(JSON.stringify(done));
  return done as T;
}

const requestFor = (flagId: string) => ({ scope: { ...ids, flagId } });

/** Creates a flag as of days ago and changes it. The rollout percentages are 100 and then the days of the changes. */
async function flagChanged(key: string, created: number, ...changed: readonly number[]) {
  now = daysAgo(created);
  const { flag } = await committed<FlagAndState>((write) =>
    createFlag(write, ids, { key, name: "A flag" }),
  );
  for (const days of changed) {
    now = daysAgo(days);
    await committed((write) =>
      changeFlag(write, requestFor(flag.id), { rollout_percentage: days }),
    );
  }
  return flag;
}

async function deleteFlag({ id }: { id: string }, days: number): Promise<void> {
  now = daysAgo(days);
  await committed((write) => removeFlag(write, requestFor(id)));
}

const rolloutsOf = async ({ id }: { id: string }) =>
  (
    await admin`
      select content -> 'rollout_percentage' as rollout
      from history where flag_id = ${id} order by sequence`
  ).map(({ rollout }) => rollout);

const actionsOf = async ({ id }: { id: string }) =>
  (await admin`select action from changes where flag_id = ${id} order by sequence`).map(
    ({ action }) => action,
  );

async function breaks(): Promise<string[]> {
  const { first } = await findBreaks(runtime);
  return first.map(({ problem }) => problem);
}

const content = { enabled: true, rollout_percentage: 1, targeting_rules: [] };

/** Adds entries from 90 days ago, a second apart, to the history of a flag. */
async function addEntries(flag: { id: string }, count: number): Promise<void> {
  await admin`
    insert into history (id, flag_id, environment_id, content, change_type, changed_by, changed_at)
    select (to_jsonb(first_id_at(moment)) #>> '{}')::uuid, ${flag.id}, ${ids.environmentId},
      ${admin.json(content)}, 'manual', ${ids.userId}, moment
    from (
      select now() - interval '90 days' + number * interval '1 second' as moment
      from generate_series(1, ${count}) as number
    ) as moments`;
  await admin`
    update flag_states set content = ${admin.json(content)},
      updated_at = (select max(changed_at) from history)`;
}

/** Where a pass of the removal begins. */
const beforeAllIds = "00000000-0000-0000-0000-000000000000";

const yearAgo = () => ({
  id: uuidv7({ msecs: daysAgo(365).getTime() }),
  changed_at: daysAgo(365),
  environment_id: ids.environmentId,
});

/** Inserts entries dated a year ago at the end of a chain, as the role of the service. */
async function forgeEntries({ id }: { id: string }, count: number): Promise<void> {
  const entry = {
    flag_id: id,
    content,
    change_type: "manual",
    changed_by: ids.userId,
  };
  const entries = Array.from({ length: count }, () => ({ ...yearAgo(), ...entry }));
  await runtime`
    insert into history (id, changed_at, environment_id, flag_id, content, change_type, changed_by)
    select id, changed_at, environment_id, flag_id, content, change_type, changed_by
    from jsonb_populate_recordset(null::history, ${json(entries)})`;
}

describe("given heads of chains from before the removal", () => {
  it("accepts entries that retention removed, and no other missing entries", async () => {
    const shortened = await flagChanged("shortened", 99, 90);
    const bygone = await flagChanged("bygone", 99, 90);
    await flagChanged("untouched", 99);
    const heads = await readHeads(runtime);
    expect(heads).toHaveLength(3);
    for (const days of [80, 70, 60]) {
      now = daysAgo(days);
      await committed((write) =>
        changeFlag(write, requestFor(shortened.id), { rollout_percentage: days }),
      );
    }
    await deleteFlag(bygone, 50);
    await retain({ auditDays: 40 });
    expect(await rolloutsOf(shortened)).toEqual([70, 60]);
    expect(await rolloutsOf(bygone)).toEqual([]);
    expect(await findMissingHeads(runtime, heads)).toEqual([]);
    const young = heads.map((head) => ({ ...head, changed_at: daysAgo(39).toISOString() }));
    expect(await findMissingHeads(runtime, young)).toMatchObject([{ flagId: shortened.id }]);
  });
});

describe("the history of deleted flags and environments", () => {
  it.each([
    ["flag", (flag: { id: string }) => deleteFlag(flag, 3)],
    ["project", ({ id }: { id: string }) => admin`delete from flags where id = ${id}`],
  ])("is removed with the %s once all of it is old", async (_what, remove) => {
    const flag = await flagChanged("checkout", 99, 90, 80, 50);
    const heads = await readHeads(runtime);
    await remove(flag);
    await retain({ auditDays: 60 });
    expect(await rolloutsOf(flag)).toEqual([90, 80, 50]);
    expect(await breaks()).toEqual([]);
    await retain({ auditDays: 40 });
    expect(await rolloutsOf(flag)).toEqual([]);
    expect(await breaks()).toEqual([]);
    expect(await findMissingHeads(runtime, heads)).toEqual([]);
  });

  it("is removed although an earlier pass kept it for the existing flag", async () => {
    const flag = await flagChanged("checkout", 99, 90, 80);
    await retain({ auditDays: 40 });
    expect(await rolloutsOf(flag)).toEqual([90, 80]);
    await deleteFlag(flag, 1);
    await retain({ auditDays: 40 });
    expect(await rolloutsOf(flag)).toEqual([]);
  });

  it("is removed with its environment while the flag exists in another one", async () => {
    const stagingId = newId();
    await admin`insert into environments values (${stagingId}, ${ids.projectId}, 'staging', now())`;
    const flag = await flagChanged("checkout", 99, 90);
    await admin`delete from flag_states where environment_id = ${stagingId}`;
    await retain({ auditDays: 40 });
    expect(await admin`select from history where environment_id = ${stagingId}`).toHaveLength(0);
    expect(await rolloutsOf(flag)).toEqual([100, 90]);
  });
});

describe("retention without a period", () => {
  it("removes nothing", async () => {
    const flag = await flagChanged("checkout", 99, 98, 97, 96);
    await deleteFlag(flag, 95);
    expect(await retain({})).toEqual({
      history: 0,
      changes: 0,
      audience_history: 0,
      change_requests: 0,
      api_keys: 0,
    });
    expect(await rolloutsOf(flag)).toEqual([100, 98, 97, 96]);
  });
});

describe("the history of a flag", () => {
  it("keeps the entries of the period and two older ones, without a break", async () => {
    const flag = await flagChanged("checkout", 99, 90, 80, 70, 50, 40);
    const untouched = await flagChanged("untouched", 99, 98);
    expect(await retain({ auditDays: 60 })).toMatchObject({ history: 2 });
    expect(await rolloutsOf(flag)).toEqual([80, 70, 50, 40]);
    expect(await rolloutsOf(untouched)).toEqual([100, 98]);
    expect(await breaks()).toEqual([]);
  });

  it("grows, and is shortened again when more entries are old", async () => {
    const flag = await flagChanged("checkout", 99, 90, 80, 70);
    await retain({ auditDays: 75 });
    now = daysAgo(20);
    await committed((write) => changeFlag(write, requestFor(flag.id), { rollout_percentage: 20 }));
    await retain({ auditDays: 40 });
    expect(await rolloutsOf(flag)).toEqual([80, 70, 20]);
    expect(await breaks()).toEqual([]);
  });

  it("is shortened in several batches by concurrent processes", async () => {
    const flag = await flagChanged("checkout", 99);
    await addEntries(flag, 2_500);
    const removed = await Promise.all([retain({ auditDays: 30 }), retain({ auditDays: 30 })]);
    expect(removed.reduce((sum, { history }) => sum + history, 0)).toBe(2_499);
    expect(await rolloutsOf(flag)).toEqual([1, 1]);
    expect(await breaks()).toEqual([]);
  });

  it("has no break for a verification during the removal", async () => {
    const flag = await flagChanged("checkout", 99);
    await addEntries(flag, 5_000);
    const removal = retain({ auditDays: 60 });
    let ended = false;
    void removal.finally(() => {
      ended = true;
    });
    while (!ended) expect(await breaks()).toEqual([]);
    expect(await removal).toMatchObject({ history: 4_999 });
  });

  it.each([
    ["removed recent entries from its beginning", "delete", "unlinked"],
    ["altered its oldest entry", "update", "changed"],
  ])("has a break if somebody %s", async (_what, how, problem) => {
    const flag = await flagChanged("checkout", 99, 90, 80, 50, 45);
    await retain({ auditDays: 60 });
    await (how === "delete"
      ? admin`delete from history where flag_id = ${flag.id} and content -> 'rollout_percentage' <> '45'`
      : admin`
          update history set content = content || '{"enabled": true}'
          where content -> 'rollout_percentage' = '90'`);
    expect(await breaks()).toEqual([problem]);
  });
});

describe("the audit log", () => {
  it("keeps entries that are more recent than the period", async () => {
    const flag = await flagChanged("checkout", 99, 61, 59);
    await retain({ auditDays: 60 });
    expect(await actionsOf(flag)).toEqual(["state"]);
  });
});

describe("ended keys", () => {
  const key = (id: string, ends: { revoked?: number; expires?: number }) => admin`
    insert into api_keys (id, secret_sha256, kind, name, environment_id, user_id, environment_only,
      version, created_at, revoked_at, expires_at)
    values (${id}, '', 'server', 'A key', ${ids.environmentId}, ${ids.userId}, false, 3, now(),
      ${ends.revoked === undefined ? null : daysAgo(ends.revoked)},
      ${ends.expires === undefined ? null : daysAgo(ends.expires)})`;

  it("are removed after the period, and expired keys are removed from the snapshot", async () => {
    await key("working", {});
    await key("ends-later", { expires: -1 });
    await key("revoked", { revoked: 61 });
    await key("revoked-later", { revoked: 59 });
    await key("expired", { expires: 61 });
    await key("expired-later", { expires: 59 });
    await admin`insert into keys_last_seen select id, now() - interval '61 days' from api_keys`;
    expect(await retain({ endedKeyDays: 60 })).toMatchObject({ api_keys: 2 });
    const left = await admin`select id from api_keys order by id`;
    expect(left.map(({ id }) => id)).toEqual([
      "ends-later",
      "expired-later",
      "revoked-later",
      "working",
    ]);
    const published = await admin`select subject, payload, tombstone from outbox`;
    expect(published).toEqual([
      {
        subject: `${ids.organizationId}.key.expired`,
        payload: expect.stringContaining('"deleted":true,"version":4'),
        tombstone: true,
      },
    ]);
  });

  it("are found without reading keys that end later", async () => {
    await key("expired", { expires: 61 });
    await admin`
      insert into api_keys (id, secret_sha256, kind, name, environment_id, user_id, environment_only,
        version, created_at, expires_at)
      select 'later-' || number, '', 'server', 'A key', ${ids.environmentId}, ${ids.userId}, false, 1,
        now(), now() + number * interval '1 minute'
      from generate_series(1, 5000) as number`;
    await admin`analyze api_keys`;
    const [read] = await runtime.begin(async (tx) => {
      expect(await tx`select from remove_ended_keys(60, 1000)`).toHaveLength(1);
      return tx`
        select (seq_tup_read + idx_tup_fetch)::int as keys from pg_stat_xact_user_tables
        where relname = 'api_keys'`;
    });
    // The planner reads a few keys at the ends of the index.
    expect(read?.keys).toBeLessThan(100);
  });
});

describe("the service's role", () => {
  it.each([
    "delete from history",
    "delete from changes",
    "delete from api_keys",
    "update audit_retention set removed_before = now()",
  ])("may not: %s", async (statement) => {
    await expect(runtime.unprepared(statement)).rejects.toMatchObject({ code: "42501" });
  });

  it("cannot remove anything of the last 30 days", async () => {
    const flag = await flagChanged("checkout", 29, 28, 27, 26);
    await runtime`select remove_old_history(0, ${beforeAllIds}, 1000)`;
    await runtime`select remove_old_changes(-1, 1000)`;
    expect(await rolloutsOf(flag)).toEqual([100, 28, 27, 26]);
    expect(await actionsOf(flag)).toHaveLength(4);
  });

  it("cannot remove recent entries by appending entries with forged dates", async () => {
    const flag = await flagChanged("checkout", 99, 90, 80, 3);
    await forgeEntries(flag, 3);
    now = daysAgo(2);
    await committed((write) => changeFlag(write, requestFor(flag.id), { rollout_percentage: 2 }));
    await runtime`select remove_old_history(30, ${beforeAllIds}, 1000)`;
    expect(await rolloutsOf(flag)).toEqual([90, 80, 3, 1, 1, 1, 2]);
    expect(await breaks()).toEqual([]);
  });

  it("cannot remove the history of a deleted flag while an entry is recent", async () => {
    const flag = await flagChanged("bygone", 99, 90, 80, 3);
    await runtime`delete from flags where id = ${flag.id}`;
    await forgeEntries(flag, 3);
    await runtime`select remove_old_history(30, ${beforeAllIds}, 1000)`;
    expect(await rolloutsOf(flag)).toEqual([90, 80, 3, 1, 1, 1]);
    expect(await breaks()).toEqual([]);
  });
});

describe("a process", () => {
  it("applies retention from its start, and counts what it removes", async () => {
    await flagChanged("checkout", 99, 90, 80, 70);
    const metrics = createMetrics({ service: "management" });
    const retention = startRetention({
      sql: runtime,
      writer: writer(),
      periods: { auditDays: 60, endedKeyDays: undefined },
      now: () => new Date(),
      metrics,
      logger: silent,
    });
    const counted = async () => {
      const metric = await metrics.getSingleMetric("halyard_retention_rows_removed_total")?.get();
      return metric?.values.find(({ labels }) => labels.table === "history")?.value;
    };
    await eventually(async () => (await counted()) === 2);
    await retention.stop();
  });
});
