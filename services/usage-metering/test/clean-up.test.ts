import type { SnapshotEntry } from "@halyard/contracts";
import type { Deletions } from "@halyard/snapshot";
import { deletedProjectInSnapshot, eventually, flagInSnapshot } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { cleanUp } from "../src/clean-up.ts";
import { createRemove } from "../src/retention/remove-deleted.ts";
import { hourMs, type Metering, makeTenant, openMetering, type Replica } from "./usage-fixture.ts";

/** Roll-up of old hours and deletion of old rows. */
let metering: Metering;
let replicas: [Replica, Replica];

beforeAll(async () => {
  metering = await openMetering();
  replicas = await Promise.all([metering.startReplica(), metering.startReplica()]);
});
afterAll(() => metering?.close());

/** Cleans up on two replicas concurrently. Returns the number of hourly rows that were rolled up. */
async function cleanUpTwice(requestRetentionDays?: number): Promise<number> {
  let hours = 0;
  const usageMetrics = {
    rolledUp: (more: number) => {
      hours += more;
    },
  };
  await Promise.all(
    replicas.map(({ sql }) => cleanUp({ sql, usageMetrics, requestRetentionDays }, () => true)),
  );
  return hours;
}

describe("old hours", () => {
  it("are rolled up into days in UTC, with the same sums by month and endpoint", async () => {
    const { admin } = metering;
    const { organizationId, projectId, environmentId } = makeTenant();
    await admin`
      insert into request_hours
      select ${organizationId}, ${projectId}, ${environmentId}, endpoint,
        date_trunc('hour', now() - number * interval '1 hour', 'UTC'), 1 + number % 7
      from generate_series(0, 70 * 24) as number, unnest(array['flags', 'stream']) as endpoint`;
    const byMonth = () => admin`
      select to_char(day, 'YYYY-MM') as month, endpoint, sum(requests)::int from (
        select (hour at time zone 'UTC')::date as day, endpoint, requests from request_hours
        where organization_id = ${organizationId}
        union all
        select day, endpoint, requests from request_days where organization_id = ${organizationId}
      ) as kept
      group by month, endpoint order by month, endpoint`;
    const before = await byMonth();
    const hours = await cleanUpTwice();
    expect(hours).toBeGreaterThan(2 * 29 * 24);
    expect(await byMonth()).toEqual(before);
    const [kept] = await admin`
      select count(*)::int as hours, min(hour) > now() - interval '40 days 2 hours' as late
      from request_hours where organization_id = ${organizationId}`;
    expect(kept?.late).toBe(true);
    expect(kept?.hours).toBe(2 * (70 * 24 + 1) - hours);
    expect(await cleanUpTwice()).toBe(0);
  });

  it("are added to an existing day", async () => {
    const { organizationId, projectId, environmentId } = makeTenant();
    for (let times = 0; times < 2; times += 1) {
      await metering.admin`
        insert into request_hours values (${organizationId}, ${projectId}, ${environmentId},
          'flags', '2020-01-01T10:00:00Z', 5)`;
      await cleanUpTwice();
    }
    const days = await metering.admin`
      select day::text, requests::int from request_days where organization_id = ${organizationId}`;
    expect(days).toEqual([{ day: "2020-01-01", requests: 10 }]);
  });
});

describe("daily requests", () => {
  const insertDays = (environmentId: string) => metering.admin`
    insert into request_days
    select gen_random_uuid(), gen_random_uuid(), ${environmentId}, 'flags',
      (now() at time zone 'UTC')::date - days, 1
    from generate_series(99, 102) as days, generate_series(1, 600)`;
  const daysOf = (environmentId: string) => metering.admin`
    select (now() at time zone 'UTC')::date - day as age, count(*)::int as rows from request_days
    where environment_id = ${environmentId} group by day order by age`;

  it("are kept without a retention period", async () => {
    const { environmentId } = makeTenant();
    await insertDays(environmentId);
    await cleanUpTwice();
    expect(await daysOf(environmentId)).toHaveLength(4);
  });

  it("are deleted after the retention period, even beyond one batch", async () => {
    const { environmentId } = makeTenant();
    await insertDays(environmentId);
    await cleanUpTwice(100);
    expect(await daysOf(environmentId)).toEqual([
      { age: 99, rows: 600 },
      { age: 100, rows: 600 },
    ]);
  });
});

describe("the baselines of flags", () => {
  it("are added each day, and deleted when the list of flags no longer needs them", async () => {
    const environmentId = uuidv7();
    await metering.admin`
      insert into flags_last_seen values (${uuidv7()}, ${environmentId}, now(), 'none', 5)`;
    await metering.admin`
      insert into flag_baselines
      select ${environmentId}, (now() at time zone 'UTC')::date - age, gen_random_uuid(), 1
      from unnest(array[31, 32]) as age`;
    await cleanUpTwice();
    const kept = await metering.admin`
      select (now() at time zone 'UTC')::date - day as age, evaluations::int from flag_baselines
      where environment_id = ${environmentId} order by day`;
    expect(kept).toEqual([
      { age: 31, evaluations: 1 },
      { age: 0, evaluations: 5 },
    ]);
  });
});

describe("rows that are no longer needed", () => {
  it("are deleted: hours that reports no longer show, and readers and edges that no longer send", async () => {
    const { admin } = metering;
    await admin`
      insert into flag_hours
      select gen_random_uuid(), gen_random_uuid(), now() - age, 1
      from unnest(array['30 days', '31 days 1 hour']::interval[]) as age`;
    await admin`
      insert into bulk_answer_hours
      select gen_random_uuid(), now() - age, 1
      from unnest(array['30 days', '31 days 1 hour']::interval[]) as age`;
    await admin`
      insert into variation_hours
      select gen_random_uuid(), gen_random_uuid(), now() - age, 'blue', 1
      from unnest(array['30 days', '31 days 1 hour']::interval[]) as age`;
    await admin`
      insert into readers
      select gen_random_uuid(), 'sdk', '1.0.0', '{}', now() - age
      from unnest(array['6 days', '7 days 1 hour']::interval[]) as age`;
    await admin`
      insert into edges
      select gen_random_uuid(), '{[1,2)}', now() - age
      from unnest(array['39 days', '40 days 1 hour']::interval[]) as age`;
    await cleanUpTwice();
    const [left] = await admin`
      select (select count(*)::int from flag_hours) as flags,
        (select count(*)::int from bulk_answer_hours) as bulk,
        (select count(*)::int from variation_hours) as variations,
        (select count(*)::int from readers) as readers,
        (select count(*)::int from edges) as edges`;
    expect(left).toEqual({ flags: 1, bulk: 1, variations: 1, readers: 1, edges: 1 });
  });

  it("are deleted, even beyond one batch", async () => {
    await metering.admin`
      insert into flag_hours
      select gen_random_uuid(), gen_random_uuid(), now() - interval '50 days', 1
      from generate_series(1, 2500)`;
    await cleanUpTwice();
    const [old] = await metering.admin`
      select count(*)::int as rows from flag_hours where hour < now() - interval '31 days'`;
    expect(old?.rows).toBe(0);
  });
});

describe("the last use of flags and keys", () => {
  const written = async (ids: readonly string[]) => {
    const rows = await metering.admin`
      select key_id as id from keys_last_seen where key_id = any(${[...ids]})
      union all select flag_id::text from flags_last_seen where flag_id::text = any(${[...ids]})`;
    return rows.map(({ id }) => id);
  };
  const insertFlags = (entries: readonly SnapshotEntry[]) =>
    Promise.all(
      entries.map(({ address }) => {
        if (address.kind !== "flag") throw new Error("not a flag");
        return metering.admin`
          insert into flags_last_seen
          values (${address.flagId}, ${address.environmentId}, now(), 'none')`;
      }),
    );
  const deletionOf = ({ address }: SnapshotEntry): SnapshotEntry => ({
    address,
    value: { deleted: true, version: 2, committed_at: new Date().toISOString() },
  });

  it("is removed by a sweep if the flag, the environment or the key was deleted", async () => {
    const { bucket, admin } = metering;
    const tenant = makeTenant();
    const gone = tenant.flag();
    const [inDeleted, kept] = tenant.flag().entries as [SnapshotEntry, SnapshotEntry];
    const missing = flagInSnapshot(tenant, { environment_id: tenant.otherEnvironmentId });
    await insertFlags([...gone.entries, inDeleted, kept, missing]);
    const keyIds = [tenant.serverKeyId, tenant.clientKeyId];
    await admin`insert into keys_last_seen select unnest(${keyIds}::text[]), now(), 'none'`;
    const key = tenant.entries.find(
      ({ address }) => address.kind === "key" && address.keyId === tenant.serverKeyId,
    );
    const [, environment] = deletedProjectInSnapshot(tenant);
    await bucket.put(
      ...[...gone.entries, key as SnapshotEntry].map(deletionOf),
      ...[environment, inDeleted, kept],
    );
    await metering.stepClock(2 * hourMs);
    const { flagId: keptId } = kept.address as { flagId: string };
    const { flagId: missingId } = missing.address;
    const ids = [gone.flagId, keptId, missingId, ...keyIds];
    await eventually(async () => (await written(ids)).length === 3);
    expect((await written(ids)).toSorted()).toEqual(
      [keptId, missingId, tenant.clientKeyId].toSorted(),
    );
  });

  it("is removed beyond one batch, but not, and without waiting, while it is written", async () => {
    const { organizationId, environmentId } = makeTenant();
    const writtenId = uuidv7();
    await metering.admin`
      insert into flags_last_seen
      select gen_random_uuid(), ${environmentId}::uuid, now(), 'none' from generate_series(1, 2500)
      union all select ${writtenId}::uuid, ${environmentId}::uuid, now(), 'none'`;
    const address = { kind: "environment", organizationId, environmentId };
    const remove = createRemove(replicas[0].sql, {
      before: ((kind) => (kind === "environment" ? [address] : [])) as Deletions["before"],
    });
    const left = async () =>
      (
        await metering.admin<{ id: string }[]>`
          select flag_id as id from flags_last_seen where environment_id = ${environmentId}`
      ).map(({ id }) => id);
    await metering.admin.begin(async (tx) => {
      await tx`update flags_last_seen set evaluated_at = now() where flag_id = ${writtenId}`;
      await remove(Date.now(), async () => true);
    });
    expect(await left()).toEqual([writtenId]);
  });
});

describe("the database role of the service", () => {
  it.each([
    "update request_days set day = day - 1",
    "delete from organization_months",
    "update organization_months set organization_id = gen_random_uuid()",
    "update edges set edge = gen_random_uuid()",
    "update readers set name = 'other'",
    "update variation_hours set variation = 'other'",
    "truncate request_hours",
    "create table usage.more (id int)",
    "select 1 from management.organizations",
  ])("has no permission for: %s", async (statement) => {
    await expect(replicas[0].sql.unprepared(statement)).rejects.toMatchObject({ code: "42501" });
  });
});
