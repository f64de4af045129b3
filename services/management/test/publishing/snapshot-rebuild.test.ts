import { randomUUID } from "node:crypto";
import type { SnapshotEntry, SnapshotRevision } from "@halyard/contracts";
import { connectPostgres } from "@halyard/postgres";
import {
  collectRead,
  followSnapshot,
  type HeldSnapshot,
  snapshotPosition,
} from "@halyard/snapshot";
import {
  eventually,
  readComplete,
  readEpoch,
  testSigner,
  testVerification,
} from "@halyard/testing";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import { createPublications } from "../../src/outbox/effects.ts";
import type { Lease } from "../../src/publishing/lease.ts";
import { findUnexplained } from "../../src/publishing/restored-database.ts";
import {
  flagsInBucket,
  flagsInTables,
  openBroker,
  openRebuilds,
  remove,
  seedFlags,
  toggle,
} from "../rebuild-fixture.ts";
import {
  flagRow,
  insertRows,
  observed,
  openPublisher,
  unsentCount,
  whileLeading,
} from "./relay-fixture.ts";
import { startThrottledProxy } from "./throttled-proxy.ts";

/** Tests a rebuild of the snapshot in an existing bucket. */
const flagCount = 3_000;

const releases: (() => Promise<unknown>)[] = [];

const rebuilds = await openRebuilds();
afterAll(() => rebuilds.close());
await seedFlags(rebuilds.sql, flagCount);
await rebuilds.synchronize();
afterEach(async () => {
  for (const release of releases.splice(0).reverse()) await release();
});

/** Makes the next leader rebuild an intact snapshot. */
const beginRebuild = () => rebuilds.sql`
  update relay_streams set base_sequence = ${Number.MAX_SAFE_INTEGER} where stream = 'snapshot'`;

type Hook = (record: number) => Promise<void> | void;

/** Returns the lease with hooks before and after each record of the leader. A rebuild records after each page. */
function recording({ before, after }: { before?: Hook; after?: Hook }): Lease {
  let records = 0;
  return {
    ...rebuilds.lease,
    async recordAsLeader(work) {
      const record = ++records;
      await before?.(record);
      const result = await rebuilds.lease.recordAsLeader(work);
      await after?.(record);
      return result;
    },
  };
}

/** Follows the flags of the snapshot, as an edge does. */
function follow({ held }: { held?: HeldSnapshot } = {}) {
  const flags = new Map<string, number>();
  const reasons: string[] = [];
  const logger = pino(
    { level: "warn" },
    { write: (line) => reasons.push(JSON.parse(line).reason) },
  );
  const fullReads: { epoch: string; flags: number }[] = [];
  let reached: SnapshotRevision | undefined;
  function apply({ address, value }: SnapshotEntry): void {
    if (address.kind !== "flag") return;
    if (value.version < (flags.get(address.flagId) ?? 0)) return;
    if ("deleted" in value) flags.delete(address.flagId);
    else flags.set(address.flagId, value.version);
  }
  const followed = followSnapshot({
    connection: rebuilds.broker.connection,
    filter: "*.flag.>",
    logger,
    held,
    follower: {
      beginRead: () =>
        collectRead((epoch, entries) => {
          flags.clear();
          for (const entry of entries) apply(entry);
          fullReads.push({ epoch, flags: flags.size });
        }),
      apply,
      isGenuineComplete: () => true,
      isGenuine: () => true,
      rejected: (key) => expect(key).toBe("no rejected entry"),
      reached: (revision) => {
        reached = revision;
      },
    },
  });
  releases.push(() => followed.stop());
  return {
    ready: followed.ready,
    flags: () => Object.fromEntries(flags),
    fullReads,
    reached: () => reached,
    stop: followed.stop,
    /** The logged reasons why the follower was not current. */
    reasons,
  };
}

/** Returns flags of all pages: the ids are random, and the keys are not. */
const someFlags = async (count: number) =>
  (await rebuilds.sql<{ id: string }[]>`select id from flags order by key limit ${count}`).map(
    ({ id }) => id,
  );

async function expectAgreement(): Promise<void> {
  expect(await flagsInBucket(rebuilds.broker)).toEqual(await flagsInTables(rebuilds.sql));
}

describe("given a slow broker, with which a rebuild takes longer than the statement timeout", () => {
  it("rebuilds the snapshot", async () => {
    const statementTimeoutMs = 2_500;
    const proxy = await startThrottledProxy(rebuilds.natsUrl, 240_000);
    const broker = await openBroker(proxy.url);
    const url = `${rebuilds.databaseUrl}?statement_timeout=${statementTimeoutMs}`;
    const { logger } = broker;
    const sql = connectPostgres({ url, name: "test", maxConnections: 4, logger });
    releases.push(
      proxy.close,
      () => broker.connection.close(),
      () => sql.end(),
    );
    await beginRebuild();
    const began = performance.now();
    await rebuilds.synchronize({ sql, broker });
    expect(performance.now() - began).toBeGreaterThan(2 * statementTimeoutMs);
    await expectAgreement();
  });
});

describe("given readers and changes during a rebuild", () => {
  it("keeps the bucket readable and brings every reader to the state of the tables", async () => {
    const { manager } = rebuilds.broker;
    const epochBefore = await readEpoch(manager);
    const { lastSequence = 0 } = (await snapshotPosition(manager)) ?? {};
    const early = follow();
    await early.ready;
    const changed = await someFlags(30);
    const removed = changed.slice(0, 10);
    let late: ReturnType<typeof follow> | undefined;
    await beginRebuild();
    const { epoch } = await rebuilds.synchronize({
      lease: recording({
        async before(record) {
          for (const flagId of changed.splice(0, 3)) await toggle(rebuilds.sql, flagId);
          const gone = removed.pop();
          if (gone !== undefined && !changed.includes(gone)) await remove(rebuilds.sql, gone);
          if (record !== 6) return;
          late = follow();
          await late.ready;
          expect(late.reached()?.epoch).toBe(epochBefore);
          expect(await readComplete(rebuilds.broker.manager)).toMatchObject({
            epoch: epochBefore,
            rebuilding: true,
          });
        },
      }),
    });
    const tables = await flagsInTables(rebuilds.sql);
    for (const reader of [early, late]) {
      await eventually(() => reader?.reached()?.epoch === epoch);
      expect(reader?.flags()).toEqual(tables);
      const smallest = Math.min(...(reader?.fullReads ?? []).map((read) => read.flags));
      expect(smallest).toBeGreaterThanOrEqual(Object.keys(tables).length);
    }
    await expectAgreement();
    expect(await readComplete(manager)).toMatchObject({
      epoch,
      from: lastSequence + 1,
      signed_by: testSigner.id,
    });
  });

  it("publishes a change before the next page, under a revision of the new epoch", async () => {
    const [flagId = ""] = await someFlags(1);
    const reader = follow();
    await reader.ready;
    const revisions: SnapshotRevision[] = [];
    let versionBefore = 0;
    await beginRebuild();
    const { epoch } = await rebuilds.synchronize({
      publications: {
        ...createPublications(),
        confirm: (_rowIds, revision) => void revisions.push(revision),
      },
      lease: recording({
        async before(record) {
          if (record === 5) {
            versionBefore = (await flagsInTables(rebuilds.sql))[flagId] ?? 0;
            await toggle(rebuilds.sql, flagId);
          }
          if (record !== 6) return;
          await eventually(() => reader.flags()[flagId] === versionBefore + 1);
          expect(reader.reached()?.epoch).not.toBe(revisions[0]?.epoch);
        },
      }),
    });
    expect(new Set(revisions.map((revision) => revision.epoch))).toEqual(new Set([epoch]));
    await eventually(() => reader.reached()?.epoch === epoch);
    await expectAgreement();
  });
});

describe("given changes that are committed during each publication", () => {
  it("completes the rebuild before the changes end, and publishes the rest afterwards", async () => {
    const { sql, broker } = rebuilds;
    const changing = await someFlags(300);
    let committing: Promise<void> | undefined;
    // All messages of a batch wait for the same commit, so that their order is preserved.
    const busy = observed(broker, () => {
      const flagId = committing === undefined ? changing.pop() : undefined;
      if (flagId !== undefined)
        committing = toggle(sql, flagId).finally(() => {
          committing = undefined;
        });
      return committing;
    });
    await beginRebuild();
    await whileLeading(rebuilds, () => rebuilds.synchronize({ broker: busy }));
    expect(changing).not.toEqual([]);
    await whileLeading(rebuilds, async () => (await openPublisher(rebuilds, "snapshot")).drain());
    await expectAgreement();
  });
});

describe("given more unsent rows than are published between the pages", () => {
  it("publishes all of them before the snapshot is complete", async () => {
    const { sql } = rebuilds;
    const organizationId = randomUUID();
    await insertRows(
      sql,
      Array.from({ length: 12_000 }, () => flagRow(organizationId)),
    );
    await beginRebuild();
    await rebuilds.synchronize();
    expect(await unsentCount(sql)).toBe(0);
    // Removes the entries, which are not in the tables.
    await beginRebuild();
    await rebuilds.synchronize();
  });
});

describe("given entries without a row in the tables", () => {
  it("removes them", async () => {
    const lost = await someFlags(5);
    await rebuilds.sql`delete from flags where id = any(${lost}::uuid[])`;
    expect(Object.keys(await flagsInBucket(rebuilds.broker))).toEqual(expect.arrayContaining(lost));
    await beginRebuild();
    await rebuilds.synchronize();
    await expectAgreement();
  });
});

describe("given a reader that is disconnected while a rebuild removes an entry", () => {
  it("is not current again until it has read the new content", async () => {
    const { sql } = rebuilds;
    const before = follow();
    await before.ready;
    const { epoch: oldEpoch = "", revision = 0 } = before.reached() ?? {};
    await before.stop();
    const [lost = ""] = await someFlags(1);
    await sql`delete from flags where id = ${lost}`;
    await beginRebuild();
    let records = 0;
    const dying = rebuilds.synchronize({
      lease: recording({
        async before(record) {
          records = record;
          if (!(lost in (await flagsInBucket(rebuilds.broker)))) throw new Error("the leader died");
        },
      }),
    });
    await expect(dying).rejects.toThrow("the leader died");
    expect(records).toBeGreaterThan(flagCount / 500);

    const reader = follow({ held: { epoch: oldEpoch, revision, currentAtMs: Date.now() } });
    const waits = eventually(() => reader.reasons.includes("the stream is not complete yet"));
    await Promise.race([reader.ready, waits]);
    expect(reader.reached()).toBeUndefined();
    const { epoch } = await rebuilds.synchronize();
    await reader.ready;
    expect(reader.reached()?.epoch).toBe(epoch);
    expect(reader.flags()).toEqual(await flagsInTables(sql));
  });
});

describe("given a leader that crashes during a rebuild", () => {
  it.each(["before", "after"] as const)(
    "leaves the next leader to restart the rebuild after a crash %s any record",
    async (moment) => {
      const { sql, broker, lease } = rebuilds;
      const epochBefore = await readEpoch(broker.manager);
      await beginRebuild();
      let deaths = 0;
      let deathsWithoutEpoch = 0;
      const attempt = () => {
        const dieAt = deaths + 1;
        const hook: Hook = (record) => {
          if (record === dieAt) throw new Error("the leader died");
        };
        return rebuilds.synchronize({ lease: recording({ [moment]: hook }) });
      };
      for (;;) {
        const outcome = await attempt().catch((error: Error) => error.message);
        if (outcome !== "the leader died") break;
        deaths += 1;
        expect(await findUnexplained(sql, lease, broker, testVerification())).toBeUndefined();
        await expectAgreement();
        if ((await readEpoch(broker.manager)) !== undefined) continue;
        // A rebuild without an existing `complete` entry has one record less.
        deathsWithoutEpoch += 1;
        await rebuilds.synchronize();
        await expectAgreement();
        await beginRebuild();
      }
      const pages = 3 + Math.ceil(Object.keys(await flagsInTables(sql)).length / 500);
      expect(deaths).toBeGreaterThanOrEqual(pages + 2);
      // The crash between the purge and the new epoch.
      expect(deathsWithoutEpoch).toBe(1);
      expect(await readEpoch(broker.manager)).not.toBe(epochBefore);
    },
    60_000,
  );
});

describe("given a bucket that lost its end", () => {
  it("has no epoch until it is rebuilt, and readers keep their state", async () => {
    const { sql, broker } = rebuilds;
    const reader = follow();
    await reader.ready;
    await sql`update relay_streams set last_sequence = last_sequence + 1 where stream = 'snapshot'`;
    const { epoch } = await rebuilds.synchronize({
      lease: recording({
        async before(record) {
          if (record > 5) return;
          expect(await readEpoch(broker.manager)).toBeUndefined();
          expect(reader.flags()).toEqual(await flagsInTables(sql));
        },
      }),
    });
    await eventually(() => reader.reached()?.epoch === epoch);
    await expectAgreement();
  });
});
