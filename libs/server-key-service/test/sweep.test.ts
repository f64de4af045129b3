import { randomUUID } from "node:crypto";
import { everythingFilter, type SnapshotEntry } from "@halyard/contracts";
import { connectNats } from "@halyard/jetstream";
import { createDeletions, type FollowedSnapshot, followSnapshot } from "@halyard/snapshot";
import {
  eventually,
  openSnapshotBucket,
  type SnapshotBucket,
  startTestNats,
  type TestNats,
} from "@halyard/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import type { NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";
import { createSweep } from "../src/sweep.ts";

let nats: TestNats;
let connection: NatsConnection;
let bucket: SnapshotBucket;
let followed: FollowedSnapshot | undefined;

const logger = pino({ level: "silent" });
const minuteMs = 60_000;
const startMs = Date.parse("2027-01-31T09:00:00Z");
const organizationId = randomUUID();

beforeAll(async () => {
  nats = await startTestNats();
  bucket = await openSnapshotBucket(nats.url);
  connection = await connectNats({ nats: { url: nats.url }, name: "test", logger });
});
afterAll(async () => {
  await followed?.stop();
  await connection?.close();
  await bucket?.close();
  await nats?.stop();
});

function deletion(projectId: string, minutesAgo: number): SnapshotEntry {
  const committed_at = new Date(startMs - minutesAgo * minuteMs).toISOString();
  return {
    address: { kind: "project", organizationId, projectId },
    value: { deleted: true, version: 2, committed_at },
  };
}

const project: SnapshotEntry = {
  address: { kind: "project", organizationId, projectId: "there" },
  value: {
    kind: "project",
    organization_id: organizationId,
    project_id: randomUUID(),
    name: "Project",
    version: 1,
    committed_at: new Date(startMs - 600 * minuteMs).toISOString(),
  },
};

let nowMs: number;
let database: string;
let removed: string[][];
/** Called when a removal begins. */
let beforeBatch: () => Promise<void>;
let sweep: () => Promise<void>;
/** The epoch that the follower has read. */
let readEpoch: string;

beforeEach(async () => {
  [nowMs, database, removed] = [startMs, "first", []];
  beforeBatch = async () => undefined;
  await followed?.stop();
  await bucket.rewrite([project, deletion("old", 61), deletion("young", 59)]);
  const deletions = createDeletions();
  const following = followSnapshot({
    connection,
    filter: everythingFilter,
    logger,
    follower: {
      apply: deletions.apply,
      beginRead: deletions.beginReplacing,
      isGenuineComplete: () => true,
      isGenuine: () => true,
      rejected: () => undefined,
      current: (epoch) => {
        readEpoch = epoch;
      },
    },
  });
  followed = following;
  await following.ready;
  const once = createSweep({
    settledRevision: following.settledRevision,
    identifyDatabase: async () => database,
    async remove(beforeMs, mayContinue) {
      await beforeBatch();
      const found = deletions.before("project", beforeMs);
      if (await mayContinue()) removed.push(found.map(({ projectId }) => projectId));
    },
    nowMs: () => nowMs,
  });
  sweep = () => once(new AbortController().signal);
  await sweep();
});

/** The leader writes to the snapshot. */
const leaderWrites = () => bucket.put(project);

describe("a sweep", () => {
  it("removes every hour what was deleted an hour ago", async () => {
    await leaderWrites();
    await sweep();
    expect(removed).toEqual([["old"]]);
    nowMs += 59 * minuteMs;
    await sweep();
    expect(removed).toHaveLength(1);
    nowMs += 2 * minuteMs;
    await sweep();
    expect(removed.slice(1)).toEqual([["old", "young"]]);
  });

  it("removes nothing before the leader has compared the database with the snapshot", async () => {
    await sweep();
    expect(removed).toEqual([]);
    await leaderWrites();
    database = "restored";
    await sweep();
    expect(removed).toEqual([]);
    await leaderWrites();
    await sweep();
    expect(removed).toEqual([["old"]]);
  });

  it.each(["before", "during"])(
    "removes nothing if a rebuild of the snapshot begins %s it, but after the rebuild",
    async (time) => {
      await leaderWrites();
      const epoch = randomUUID();
      const rebuild = async () => {
        await bucket.complete({ epoch, from: 1, rebuilding: true });
        await eventually(() => readEpoch === epoch);
      };
      if (time === "before") await rebuild();
      else beforeBatch = rebuild;
      await sweep();
      expect(removed).toEqual([]);
      beforeBatch = async () => undefined;
      await bucket.complete({ epoch: randomUUID(), from: 1 });
      await eventually(async () => {
        await sweep();
        return removed.length > 0;
      });
      expect(removed).toEqual([["old"]]);
    },
  );
});
