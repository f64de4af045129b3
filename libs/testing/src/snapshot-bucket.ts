import { randomUUID } from "node:crypto";
import { signComplete } from "@halyard/api-keys";
import {
  type CompleteEntry,
  completeKey,
  entryKey,
  type SnapshotEntry,
  snapshotBucket,
} from "@halyard/contracts";
import { deleteStream, ensureSnapshot, keepStreams, type StreamPosition } from "@halyard/jetstream";
import { type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { pino } from "pino";
import { eventually } from "./eventually.ts";
import { payloadOf, testSigner } from "./test-signing.ts";

/**
 * The snapshot's bucket in a real NATS server, written by a test in management's place. The other streams exist
 * as long as it is open, because management creates them too.
 */
export type SnapshotBucket = {
  /** Makes the bucket anew, under a new epoch, and writes these entries. */
  rewrite(entries: readonly SnapshotEntry[]): Promise<void>;
  /** Makes the bucket anew and stops in the middle: nothing says that it is complete. */
  rewriteWithoutEnd(entries: readonly SnapshotEntry[]): Promise<void>;
  /** Writes the entry `complete`. */
  complete(entry: CompleteEntry): Promise<void>;
  put(...entries: SnapshotEntry[]): Promise<void>;
  /** Writes this payload under the key of an entry, without a signature. */
  putPayload(entry: Pick<SnapshotEntry, "address">, payload: string): Promise<void>;
  /** Writes something that is no entry under the key of one. */
  spoil(entry: SnapshotEntry, value: unknown): Promise<void>;
  /** Removes an entry without a trace, as the broker may lose one. */
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
    // Behind a server that a test has just started again, the connection may still be that to the one before.
    await eventually(async () => {
      await recreateSnapshot(manager);
      return true;
    });
    await put(...entries);
  }

  return {
    async rewrite(entries) {
      await rewriteWithoutEnd(entries);
      await complete({ epoch: randomUUID() });
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
