import { randomUUID } from "node:crypto";
import {
  completeKey,
  entryKey,
  everythingFilter,
  type FlagEntry,
  type SnapshotRevision,
  snapshotBucket,
} from "@halyard/contracts";
import {
  connectNats,
  type FollowedSnapshot,
  followSnapshot,
  publishFenced,
  recreateSnapshot,
  type SnapshotEntry,
} from "@halyard/jetstream";
import { eventually, startTestNats, type TestNats } from "@halyard/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";

/** Following the snapshot on a real server, over everything that can happen to the bucket. */
let nats: TestNats;
let connection: NatsConnection;
let manager: JetStreamManager;
let lastSequence = 0;
const logger = pino({ level: "silent" });
const following: FollowedSnapshot[] = [];

beforeAll(async () => {
  nats = await startTestNats();
  connection = await connectNats({ nats: { url: nats.url }, name: "test", logger });
  manager = await jetstreamManager(connection);
});
afterEach(async () => {
  await Promise.all(following.splice(0).map((one) => one.stop()));
  await manager.streams.delete(snapshotBucket.streamName).catch(() => undefined);
});
afterAll(async () => {
  await connection.close();
  await nats.stop();
});

const organizationId = randomUUID();
const environmentId = randomUUID();

function flag(version: number, flagId = randomUUID()): FlagEntry {
  return {
    kind: "flag",
    organization_id: organizationId,
    project_id: organizationId,
    environment_id: environmentId,
    flag_id: flagId,
    key: `flag-${flagId}`,
    enabled: true,
    rollout_percentage: 100,
    targeting_rules: [],
    version,
    committed_at: "2027-01-31T09:00:00.000Z",
  };
}

async function openBucket(): Promise<void> {
  ({ lastSequence } = await recreateSnapshot(manager, 1));
}

async function put(key: string, value: unknown): Promise<void> {
  const payload = typeof value === "string" ? value : JSON.stringify(value);
  const message = { subject: snapshotBucket.subjectPrefix + key, payload };
  const result = await publishFenced(jetstream(connection), [message], lastSequence);
  if (result.failure !== undefined) throw result.failure;
  lastSequence += 1;
}

const putFlag = (entry: FlagEntry) =>
  put(entryKey({ kind: "flag", organizationId, environmentId, flagId: entry.flag_id }), entry);

const complete = (epoch: string = randomUUID()) => put(completeKey, { epoch });

function follow(filter = everythingFilter) {
  const seen = {
    reads: [] as { epoch: string; entries: readonly SnapshotEntry[] }[],
    applied: [] as SnapshotEntry[],
    rejected: [] as string[],
    reached: [] as SnapshotRevision[],
  };
  const followed = followSnapshot({
    connection,
    filter,
    logger,
    follower: {
      replace: (epoch, entries) => void seen.reads.push({ epoch, entries }),
      apply: (entry) => void seen.applied.push(entry),
      rejected: (key) => void seen.rejected.push(key),
      reached: (revision) => void seen.reached.push(revision),
    },
  });
  following.push(followed);
  return { ...seen, followed };
}

describe("given a complete snapshot", () => {
  it("hands over all entries as one whole, then each change", async () => {
    await openBucket();
    const [one, two] = [flag(1), flag(1)];
    await putFlag(one);
    await putFlag(two);
    const epoch = randomUUID();
    await complete(epoch);
    const { reads, applied, followed } = follow();
    await followed.ready;
    expect(reads).toMatchObject([{ epoch, entries: [{ value: one }, { value: two }] }]);
    expect(followed.isCurrent()).toBe(true);
    await putFlag({ ...one, version: 2 });
    await eventually(() => applied.length === 1);
    expect(applied[0]?.value).toMatchObject({ flag_id: one.flag_id, version: 2 });
  });

  it("names the revision after the full read, and after each message, also an invalid one", async () => {
    await openBucket();
    await putFlag(flag(1));
    const epoch = randomUUID();
    await complete(epoch);
    const revision = lastSequence;
    const { reached, followed } = follow();
    await followed.ready;
    expect(reached).toEqual([{ epoch, revision }]);
    await putFlag(flag(1));
    await put(`${organizationId}.flag.${environmentId}.${randomUUID()}`, "not JSON");
    await eventually(() => reached.length === 3);
    expect(reached.map((each) => each.revision - revision)).toEqual([0, 1, 2]);
  });

  it("reads only what its filter asks for", async () => {
    await openBucket();
    await putFlag(flag(1));
    await complete();
    const { reads, followed } = follow("*.key.*");
    await followed.ready;
    expect(reads).toMatchObject([{ entries: [] }]);
  });

  it("leaves out what does not fit its schema and goes on with the rest", async () => {
    await openBucket();
    const good = flag(1);
    const bad = `${organizationId}.flag.${environmentId}.${randomUUID()}`;
    await put(bad, "not JSON");
    await putFlag(good);
    await put(`${organizationId}.something.new`, { unknown: true });
    await complete();
    const { reads, rejected, followed } = follow();
    await followed.ready;
    expect(reads[0]?.entries).toMatchObject([{ value: good }]);
    expect(rejected).toEqual([bad]);
  });
});

describe("given a snapshot that is not complete", () => {
  it("hands over nothing until it is", async () => {
    await openBucket();
    await putFlag(flag(1));
    const { reads, followed } = follow();
    const another = follow();
    expect(reads).toEqual([]);
    expect(followed.isCurrent()).toBe(false);
    await complete();
    await Promise.all([followed.ready, another.followed.ready]);
    expect(reads).toHaveLength(1);
  });
});

describe("given a snapshot that is deleted and written anew", () => {
  it("hands over the new one as a whole", async () => {
    await openBucket();
    await putFlag(flag(1));
    await complete();
    const { reads, followed } = follow();
    await followed.ready;
    await openBucket();
    const survivor = flag(5);
    await putFlag(survivor);
    const epoch = randomUUID();
    await complete(epoch);
    await eventually(() => reads.length === 2);
    expect(reads[1]).toMatchObject({ epoch, entries: [{ value: survivor }] });
  });

  it("is not current while it is gone", async () => {
    await openBucket();
    await complete();
    const { followed } = follow();
    await followed.ready;
    await manager.streams.delete(snapshotBucket.streamName);
    await eventually(() => !followed.isCurrent());
  });
});

describe("given writers that do not know the end of the stream", () => {
  it("refuses the whole batch of the one who comes second", async () => {
    await openBucket();
    const client = jetstream(connection);
    const batch = (name: string) =>
      [1, 2, 3].map((n) => ({
        subject: `${snapshotBucket.subjectPrefix}${name}.${n}`,
        payload: "{}",
      }));
    const first = await publishFenced(client, batch("first"), 0);
    const second = await publishFenced(client, batch("second"), 0);
    expect(first.sequences).toEqual([1, 2, 3]);
    expect(second.sequences).toEqual([undefined, undefined, undefined]);
    expect(second.failure).toBeDefined();
  });
});
