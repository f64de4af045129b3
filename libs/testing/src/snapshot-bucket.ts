import { randomUUID } from "node:crypto";
import { completeAt, signComplete } from "@halyard/api-keys";
import {
  type CompleteEntry,
  completeKey,
  entryKey,
  peopleBucket,
  peopleCompleteKey,
  peopleSignaturePrefix,
  type SnapshotEntry,
  snapshotBucket,
} from "@halyard/contracts";
import {
  deleteStream,
  ensurePeople,
  ensureSnapshot,
  keepStreams,
  type StreamPosition,
  streamPosition,
} from "@halyard/jetstream";
import {
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
} from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { pino } from "pino";
import { eventually } from "./eventually.ts";
import { payloadOf, testSigner } from "./test-signing.ts";

/**
 * The bucket of the snapshot in a real NATS server, which a test writes instead of management. The other streams exist
 * while it is open, because management creates them too, and a people bucket without people.
 */
export type SnapshotBucket = {
  /** Creates the bucket again, with a new epoch, and writes these entries. */
  rewrite(entries: readonly SnapshotEntry[]): Promise<void>;
  /** Creates the bucket again and writes these entries, but not the entry `complete`. */
  rewriteWithoutEnd(entries: readonly SnapshotEntry[]): Promise<void>;
  complete(entry: CompleteEntry): Promise<void>;
  put(...entries: SnapshotEntry[]): Promise<void>;
  /** Writes this payload under the key of an entry, without a signature. */
  putPayload(entry: Pick<SnapshotEntry, "address">, payload: string): Promise<void>;
  /** Writes an invalid value under the key of an entry. */
  spoil(entry: SnapshotEntry, value: unknown): Promise<void>;
  /** Removes an entry without a tombstone, as if the broker had lost it. */
  lose(entry: SnapshotEntry): Promise<void>;
  delete(): Promise<void>;
  close(): Promise<void>;
};

/** Deletes the bucket of the snapshot and creates it empty. */
export async function recreateSnapshot(manager: JetStreamManager): Promise<StreamPosition> {
  await deleteStream(manager, snapshotBucket.streamName);
  return ensureSnapshot(manager, 1);
}

export async function openSnapshotBucket(url: string): Promise<SnapshotBucket> {
  const connection = await connect({
    servers: url,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 50,
  });
  const manager = await jetstreamManager(connection);
  const client = jetstream(connection);
  const streams = keepStreams({ connection, replicas: 1, logger: pino({ level: "silent" }) });

  if ((await streamPosition(manager, peopleBucket.streamName)) === undefined)
    await createPeopleBucket(manager, client);

  async function write(key: string, value: unknown): Promise<void> {
    await client.publish(snapshotBucket.subjectPrefix + key, JSON.stringify(value));
  }

  async function complete(entry: CompleteEntry): Promise<void> {
    const { state } = await manager.streams.info(snapshotBucket.streamName);
    const payload = await signComplete(testSigner, entry, state.last_seq + 1);
    await client.publish(snapshotBucket.subjectPrefix + completeKey, payload);
  }

  async function putPayload(
    { address }: Pick<SnapshotEntry, "address">,
    payload: string,
  ): Promise<void> {
    await client.publish(snapshotBucket.subjectPrefix + entryKey(address), payload);
  }

  async function put(...entries: SnapshotEntry[]): Promise<void> {
    const payloads = await Promise.all(entries.map((entry) => payloadOf(entry)));
    await Promise.all(entries.map((entry, index) => putPayload(entry, payloads[index] ?? "")));
  }

  async function rewriteWithoutEnd(entries: readonly SnapshotEntry[]): Promise<void> {
    // After a restart of the server by the test, the connection may not have detected the loss of the old one yet.
    await eventually(async () => {
      await recreateSnapshot(manager);
      return true;
    });
    await put(...entries);
  }

  return {
    async rewrite(entries) {
      await rewriteWithoutEnd(entries);
      await complete({ epoch: randomUUID(), from: 1 });
    },
    rewriteWithoutEnd,
    complete,
    put,
    putPayload,
    spoil: (entry, value) => write(entryKey(entry.address), value),
    async lose({ address }) {
      const filter = snapshotBucket.subjectPrefix + entryKey(address);
      await manager.streams.purge(snapshotBucket.streamName, { filter });
    },
    async delete() {
      await manager.streams.delete(snapshotBucket.streamName);
    },
    async close() {
      await streams.stop();
      await connection.close();
    },
  };
}

async function createPeopleBucket(
  manager: JetStreamManager,
  client: JetStreamClient,
): Promise<void> {
  await ensurePeople(manager, 1);
  const payload = JSON.stringify({ epoch: randomUUID(), from: 1, signed_by: testSigner.id });
  const signed = await testSigner.sign(peopleSignaturePrefix + completeAt(1), payload);
  await client.publish(peopleBucket.subjectPrefix + peopleCompleteKey, signed);
}
