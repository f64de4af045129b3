import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import {
  completeKey,
  entryKey,
  everythingFilter,
  type FlagEntry,
  type SnapshotEntry,
  type SnapshotRevision,
  snapshotBatchEntries,
  snapshotBucket,
} from "@halyard/contracts";
import { connectNats, deleteStream, followStream, publishFenced } from "@halyard/jetstream";
import {
  collectRead,
  type FollowedSnapshot,
  followSnapshot,
  type HeldSnapshot,
  type SnapshotFollower,
} from "@halyard/snapshot";
import { eventually, recreateSnapshot, startTestNats, type TestNats } from "@halyard/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";

/** A follower of the snapshot on a real server, and changes of the bucket. */
let nats: TestNats;
let connection: NatsConnection;
/** A separate connection of the writer, because a message that is published during a reconnect is lost. */
let writer: NatsConnection;
let manager: JetStreamManager;
let lastSequence = 0;
const logger = pino({ level: "silent" });
const following: FollowedSnapshot[] = [];

beforeAll(async () => {
  nats = await startTestNats();
  connection = await connectNats({ nats: { url: nats.url }, name: "test", logger });
  writer = await connectNats({ nats: { url: nats.url }, name: "writer", logger });
  manager = await jetstreamManager(writer);
});
afterEach(async () => {
  await Promise.all(following.splice(0).map((one) => one.stop()));
  await deleteStream(manager, snapshotBucket.streamName);
});
afterAll(async () => {
  await Promise.all([connection.close(), writer.close()]);
  await nats.stop();
});

const organizationId = randomUUID();
const environmentId = randomUUID();

function flag(version: number, flagId: string = randomUUID()): FlagEntry {
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
  ({ lastSequence } = await recreateSnapshot(manager));
}

async function put(key: string, value: unknown): Promise<void> {
  const payload = typeof value === "string" ? value : JSON.stringify(value);
  const message = { subject: snapshotBucket.subjectPrefix + key, payload };
  const result = await publishFenced(jetstream(writer), [message], lastSequence);
  if (result.failure !== undefined) throw result.failure;
  lastSequence += 1;
}

const putFlag = (entry: FlagEntry) =>
  put(entryKey({ kind: "flag", organizationId, environmentId, flagId: entry.flag_id }), entry);

const complete = (epoch: string = randomUUID()) => put(completeKey, { epoch, from: 1 });

function idOf(value: SnapshotEntry["value"]): string | undefined {
  return "flag_id" in value ? value.flag_id : undefined;
}

function follow(
  filter = everythingFilter,
  held?: HeldSnapshot,
  isGenuineComplete: SnapshotFollower["isGenuineComplete"] = () => true,
) {
  const seen = {
    reads: [] as { epoch: string; entries: readonly SnapshotEntry[] }[],
    applied: [] as SnapshotEntry[],
    rejected: [] as string[],
    reached: [] as SnapshotRevision[],
  };
  const followed = followSnapshot({
    connection,
    filter,
    held,
    logger,
    follower: {
      isGenuineComplete,
      isGenuine: () => true,
      beginRead: () => collectRead((epoch, entries) => void seen.reads.push({ epoch, entries })),
      apply: (entry) => void seen.applied.push(entry),
      rejected: (key) => void seen.rejected.push(key),
      reached: (revision) => void seen.reached.push(revision),
    },
  });
  following.push(followed);
  return { ...seen, followed };
}

describe("given a snapshot whose entry `complete` is not genuine", () => {
  it("waits, and reads the snapshot when the entry is genuine", async () => {
    await openBucket();
    await putFlag(flag(1));
    await complete();
    const signers: (string | undefined)[] = [];
    const { reads, followed } = follow(everythingFilter, undefined, ({ signed_by }) => {
      signers.push(signed_by);
      return signed_by === "known";
    });
    await eventually(() => signers.length > 1);
    await put(completeKey, { epoch: randomUUID(), from: 1, signed_by: "unknown" });
    await eventually(() => signers.at(-1) === "unknown");
    expect(reads).toEqual([]);
    const epoch = randomUUID();
    await put(completeKey, { epoch, from: 1, signed_by: "known" });
    await followed.ready;
    expect(reads).toMatchObject([{ epoch }]);
  });

  it("keeps its state and stops being current when the entry is replaced", async () => {
    await openBucket();
    await put(completeKey, { epoch: randomUUID(), from: 1, signed_by: "known" });
    const { reads, applied, followed } = follow(
      everythingFilter,
      undefined,
      ({ signed_by }) => signed_by === "known",
    );
    await followed.ready;
    await put(completeKey, { epoch: randomUUID(), from: 1, signed_by: "unknown" });
    await eventually(() => !followed.isCurrent());
    await putFlag(flag(1));
    await put(completeKey, { epoch: randomUUID(), from: 1, signed_by: "known" });
    await eventually(() => followed.isCurrent());
    expect(reads).toHaveLength(2);
    expect(applied).toEqual([]);
  });
});

describe("given a complete snapshot", () => {
  it("delivers all entries together, then each change", async () => {
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

  it("reports the revision after the full read, and after each message, even an invalid one", async () => {
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

  it("does not make the broker examine every subject", async () => {
    await openBucket();
    await complete();
    const { followed } = follow();
    await followed.ready;
    const [consumer] = await manager.consumers.list(snapshotBucket.streamName).next();
    expect(consumer?.config).toMatchObject({ deliver_policy: "by_start_sequence" });
    expect(consumer?.config).not.toHaveProperty("filter_subject");
  });

  it("reads only the entries of its filter", async () => {
    await openBucket();
    await putFlag(flag(1));
    await complete();
    const { reads, followed } = follow("*.key.*");
    await followed.ready;
    expect(reads).toMatchObject([{ entries: [] }]);
  });

  it("ignores entries that do not fit their schema", async () => {
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

describe("given a snapshot with continuous writes", () => {
  it("becomes current at every start, and has every entry", async () => {
    await openBucket();
    // More than the broker sends without flow control, so that entries are replaced before their delivery.
    const flags = Array.from({ length: 2_000 }, () => ({ ...flag(1), key: "k".repeat(3_000) }));
    for (const each of flags) await putFlag(each);
    await complete();
    const revisions: number[] = [];
    let rewritten = 0;
    let isWriting = true;
    const writing = (async () => {
      for (; isWriting; rewritten += 1) {
        const { flag_id } = flags[rewritten % 3] as FlagEntry;
        await putFlag({ ...flag(rewritten + 2, flag_id), key: "k".repeat(3_000) });
        await delay(2);
      }
    })();
    for (let starts = 0; starts < 8; starts += 1) {
      const { reads, reached, followed } = follow();
      await followed.ready;
      expect(new Set(reads[0]?.entries.map(({ value }) => idOf(value))).size).toBe(flags.length);
      revisions.push(reached[0]?.revision ?? 0);
      await followed.stop();
    }
    isWriting = false;
    await writing;
    // There were more writes at each start.
    expect(new Set(revisions).size).toBe(revisions.length);
  });
});

describe("given a reader that was current before an interruption", () => {
  /** More entries than a resumed read repeats. */
  const manyFlags = Array.from({ length: 2 * snapshotBatchEntries }, () => flag(1));
  const epoch = randomUUID();

  async function openFullBucket(): Promise<void> {
    await openBucket();
    await Promise.all(
      manyFlags.map((each) => {
        const { flag_id: flagId } = each;
        const key = entryKey({ kind: "flag", organizationId, environmentId, flagId });
        return jetstream(writer).publish(snapshotBucket.subjectPrefix + key, JSON.stringify(each));
      }),
    );
    lastSequence = manyFlags.length;
    await complete(epoch);
  }

  async function interrupt(followed: FollowedSnapshot, meanwhile: () => Promise<void>) {
    // After the reconnect, the follower waits before its next attempt.
    const lost = eventually(() => !followed.isCurrent());
    await connection.reconnect();
    await lost;
    await meanwhile();
    await eventually(() => followed.isCurrent());
  }

  it("reads the missed entries, and repeats at most the relay's last batch", async () => {
    await openFullBucket();
    const { reads, applied, reached, followed } = follow();
    await followed.ready;
    const missed = flag(1);
    await interrupt(followed, () => putFlag(missed));
    expect(reads).toHaveLength(1);
    expect(applied.at(-1)?.value).toEqual(missed);
    expect(applied.length).toBeLessThanOrEqual(snapshotBatchEntries + 1);
    expect(reached.at(-1)).toEqual({ epoch, revision: lastSequence });
  });

  it("reads everything if the same bucket has a new epoch", async () => {
    await openFullBucket();
    const { reads, followed } = follow();
    await followed.ready;
    const other = randomUUID();
    await interrupt(followed, async () => {
      await putFlag(flag(1));
      await complete(other);
    });
    expect(reads.at(-1)).toMatchObject({ epoch: other });
    expect(reads.at(-1)?.entries).toHaveLength(manyFlags.length + 1);
  });

  it("continues from the state of an earlier process", async () => {
    await openFullBucket();
    const held = { epoch, revision: lastSequence, currentAtMs: Date.now() };
    const missed = flag(1);
    await putFlag(missed);
    const { reads, applied, followed } = follow(everythingFilter, held);
    await followed.ready;
    expect(reads).toHaveLength(0);
    expect(applied.at(-1)?.value).toEqual(missed);
  });

  it("reads everything if the stream has lost messages that the state contains", async () => {
    await openFullBucket();
    const held = { epoch, revision: lastSequence + 1, currentAtMs: Date.now() };
    const { reads, followed } = follow(everythingFilter, held);
    await followed.ready;
    expect(reads[0]?.entries).toHaveLength(manyFlags.length);
  });
});

describe("given a replica that has not applied the purge of a rebuild", () => {
  it("ignores entries before the first sequence of the epoch", async () => {
    await openBucket();
    const [removed, kept] = [flag(1), flag(1)];
    await putFlag(removed);
    await putFlag(kept);
    await put(completeKey, { epoch: randomUUID(), from: 2 });
    const { reads, reached, followed } = follow();
    await followed.ready;
    expect(reads[0]?.entries).toMatchObject([{ value: kept }]);
    expect(reached[0]?.revision).toBe(lastSequence);
  });

  it("ignores them in a resumed read too", async () => {
    await openBucket();
    const [removed, kept] = [flag(1), flag(1)];
    await putFlag(removed);
    await putFlag(kept);
    const epoch = randomUUID();
    await put(completeKey, { epoch, from: 2 });
    const held = { epoch, revision: lastSequence, currentAtMs: Date.now() };
    const { reads, applied, followed } = follow(everythingFilter, held);
    await followed.ready;
    expect(reads).toHaveLength(0);
    expect(applied).toMatchObject([{ value: kept }]);
  });
});

describe("given entries that are written while the identity of the stream is read", () => {
  it("reads at least to the end that the stream had then", async () => {
    await openBucket();
    await putFlag(flag(1));
    const seen = Promise.withResolvers<number>();
    const { stop } = followStream({
      connection,
      logger,
      source: {
        stream: snapshotBucket.streamName,
        filter: undefined,
        async identify() {
          await putFlag(flag(1));
          return { identity: "same" };
        },
        begin(found) {
          seen.resolve(found.lastSequence);
          return { take: () => undefined, caughtUp: () => undefined };
        },
      },
    });
    expect(await seen.promise).toBe(2);
    await stop();
  });
});

describe("given an incomplete snapshot", () => {
  it("delivers nothing until it is complete", async () => {
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

describe("given a snapshot whose epoch changes while it is read", () => {
  it("discards the read, and reads everything of the new epoch", async () => {
    await openBucket();
    await putFlag(flag(1));
    await complete();
    const later = randomUUID();
    const { isSent, restore } = beforeSecondDirectGet(() => complete(later));
    const { reads, followed } = follow();
    await followed.ready;
    restore();
    expect(isSent()).toBe(true);
    expect(reads.map(({ epoch }) => epoch)).toEqual([later]);
  });
});

/** Delays the second read of the entry `complete` until `act` has completed. */
function beforeSecondDirectGet(act: () => Promise<void>) {
  const request = connection.request.bind(connection);
  let directGets = 0;
  const spy = jest.spyOn(connection, "request").mockImplementation(async (subject, ...rest) => {
    if (subject.startsWith(`$JS.API.DIRECT.GET.${snapshotBucket.streamName}`)) directGets += 1;
    if (directGets === 2) await act();
    return request(subject, ...rest);
  });
  return { isSent: () => directGets >= 2, restore: () => spy.mockRestore() };
}

describe("given a snapshot that is deleted and written again", () => {
  it("delivers all entries of the new one together", async () => {
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

  it("is not current while the snapshot does not exist", async () => {
    await openBucket();
    await complete();
    const { followed } = follow();
    await followed.ready;
    await manager.streams.delete(snapshotBucket.streamName);
    await eventually(() => !followed.isCurrent());
  });
});

describe("given writers that do not know the end of the stream", () => {
  it("rejects the whole batch of the second writer", async () => {
    await openBucket();
    const client = jetstream(writer);
    const batch = (name: string) =>
      [1, 2, 3].map((n) => ({
        subject: `${snapshotBucket.subjectPrefix}${name}.${n}`,
        payload: "{}",
      }));
    const first = await publishFenced(client, batch("first"), 0);
    const second = await publishFenced(client, batch("second"), 0);
    expect(first.sequences).toEqual([1, 2, 3]);
    expect(second.sequences).toEqual([]);
    expect(second.failure).toBeDefined();
  });
});
