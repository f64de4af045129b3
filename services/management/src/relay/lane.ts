import type { EntrySigner } from "@halyard/api-keys";
import {
  type FlagEvent,
  type SnapshotRevision,
  snapshotBatchEntries,
  snapshotBucket,
} from "@halyard/contracts";
import { type OutgoingMessage, publishFenced } from "@halyard/jetstream";
import type { Sql } from "@halyard/postgres";
import type { Publications } from "../outbox/publications.ts";
import type { Broker } from "./broker.ts";
import { LeadershipLostError, StreamMovedError } from "./failures.ts";
import type { Lease } from "./lease.ts";
import { type NewestValue, newestValues } from "./newest-values.ts";
import {
  recordAdvanced,
  recordSent,
  type SettledRow,
  type StreamName,
  unsentRange,
} from "./outbox-rows.ts";
import { signedPayload } from "./signed-payload.ts";
import { type QueueKind, type UnsentBatch, type UnsentRow, unsentRows } from "./unsent-rows.ts";

/**
 * A lane publishes one stream's rows of the outbox. It reads a batch of unsent rows, publishes it behind the
 * stream's last sequence, confirms it to waiting writes, and records it. One batch is under way at a time, so the
 * rows of an entity are published in their order. Of several values of an entry in a batch, only the newest is
 * published; the others are settled with it.
 */
export type Lane = {
  /**
   * Publishes what is unsent, or at most this number of batches of each kind. Returns the number of
   * messages.
   */
  drain(bounds?: { atMostPasses: number }): Promise<number>;
  /** Publishes every row that is unsent now. It ends also while rows keep coming. */
  drainPresent(): Promise<void>;
  /**
   * Publishes messages that have no rows, as one batch. Rows that were unsent when the caller read the
   * values are published afterwards, so the newest value of an entry is always the last one.
   */
  write(messages: readonly OutgoingMessage[]): Promise<void>;
  /** The last sequence that is recorded as published. */
  lastSequence(): number;
};

/**
 * Kinds of rows. Batches of the kinds alternate, so a revocation waits for one batch of flags at most, and a flag
 * for one batch of keys.
 */
const kindsOf: Readonly<Record<StreamName, readonly QueueKind[]>> = {
  events: ["events"],
  snapshot: ["keys", "flags"],
};

/** Large enough that a burst costs few round trips, small enough that a batch takes milliseconds. */
const batchBounds = { rows: snapshotBatchEntries, bytes: 4 * 1024 * 1024 };

export function createLane(options: {
  stream: StreamName;
  sql: Sql;
  lease: Lease;
  broker: Broker;
  publications: Publications;
  /** The epoch of the snapshot, for the lane that writes it. */
  epoch?: string;
  signer?: EntrySigner | undefined;
  /** The sequence that stands last in the stream as the lane begins. */
  lastSequence: number;
  isLeading: () => boolean;
}): Lane {
  const { stream, sql, lease, broker, publications } = options;
  const nextBatch = batchReader(sql);
  let lastSequence = options.lastSequence;

  return {
    async drain({ atMostPasses } = { atMostPasses: Number.POSITIVE_INFINITY }) {
      let sent = 0;
      for (let pass = 0; pass < atMostPasses; pass += 1) {
        const { messages, hasMore } = await publishPass();
        sent += messages;
        if (!hasMore) break;
      }
      return sent;
    },
    async drainPresent() {
      const { newest } = await unsentRange(sql, stream);
      if (newest === undefined) return;
      let oldest: number | undefined;
      do {
        await publishPass();
        oldest = (await unsentRange(sql, stream)).oldest;
      } while (oldest !== undefined && oldest <= newest);
    },
    async write(messages) {
      if (!options.isLeading()) throw new LeadershipLostError("the lease has ended");
      const recordedBefore = lastSequence;
      const { failure } = await publishFenced(broker.client, messages, lastSequence);
      if (failure !== undefined)
        throw new StreamMovedError("not everything was acknowledged", { cause: failure });
      lastSequence += messages.length;
      await lease.recordAsLeader((tx) =>
        recordAdvanced(tx, stream, { lastSequence, recordedBefore }),
      );
    },
    lastSequence: () => lastSequence,
  };

  /** Publishes a batch of each kind. Returns the number of messages, and whether rows may be left. */
  async function publishPass(): Promise<{ messages: number; hasMore: boolean }> {
    let messages = 0;
    let hasMore = false;
    for (const kind of kindsOf[stream]) {
      const batch = await nextBatch(kind);
      messages += await publish(batch.rows);
      hasMore ||= batch.hasMore;
    }
    return { messages, hasMore };
  }

  /** Publishes a batch. Returns the number of messages. */
  async function publish(rows: readonly UnsentRow[]): Promise<number> {
    if (rows.length === 0) return 0;
    if (!options.isLeading()) throw new LeadershipLostError("the lease has ended");
    const values = stream === "events" ? everyValue(rows) : newestValues(rows);
    const messages = await Promise.all(values.map(({ row }) => outgoing(row)));
    const { sequences, failure } = await publishFenced(broker.client, messages, lastSequence);
    const acknowledged = sequences.at(-1);
    if (acknowledged !== undefined) await record(settledBy(values, sequences), acknowledged);
    if (failure !== undefined)
      throw new StreamMovedError("not everything was acknowledged", { cause: failure });
    lastSequence += messages.length;
    if (acknowledged !== lastSequence)
      throw new StreamMovedError("the broker had seen a message before");
    return messages.length;
  }

  async function record(rows: readonly SettledRow[], acknowledged: number): Promise<void> {
    const revision = revisionOf(acknowledged);
    publications.confirm(
      rows.map(({ id }) => id),
      revision,
    );
    const sequences = { lastSequence: acknowledged, recordedBefore: lastSequence };
    await lease.recordAsLeader((tx) => recordSent(tx, stream, rows, { ...sequences, revision }));
  }

  function revisionOf(sequence: number): SnapshotRevision | undefined {
    if (options.epoch === undefined) return undefined;
    return { epoch: options.epoch, revision: sequence };
  }

  async function outgoing(row: UnsentRow): Promise<OutgoingMessage> {
    const { subject, payload, messageId } = row;
    if (stream === "events") return { subject, payload, messageId, ...entityOf(payload) };
    return {
      subject: snapshotBucket.subjectPrefix + subject,
      payload: await signedPayload(options.signer, subject, payload),
    };
  }
}

/** Returns a function that reads the next batch of a kind. After the last queue, the first one follows. */
function batchReader(sql: Sql): (kind: QueueKind) => Promise<UnsentBatch> {
  const lastQueues = new Map<QueueKind, string | undefined>();
  return async function nextBatch(kind): Promise<UnsentBatch> {
    const afterQueue = lastQueues.get(kind);
    const batch = await unsentRows(sql, kind, { ...batchBounds, afterQueue });
    lastQueues.set(kind, batch.lastQueue);
    return batch.rows.length === 0 && afterQueue !== undefined ? nextBatch(kind) : batch;
  };
}

/** Names the flag that an event is about. */
function entityOf(payload: string): { entity?: string } {
  const { flag } = JSON.parse(payload) as Partial<FlagEvent>;
  return flag === undefined ? {} : { entity: flag.id };
}

const everyValue = (rows: readonly UnsentRow[]): NewestValue[] =>
  rows.map((row) => ({ row, overtaken: [] }));

/**
 * Returns the rows that acknowledged messages settle. Messages behind a missing acknowledgement may follow a foreign
 * one. They stay unrecorded, so that the next round compares everything from there on.
 */
function settledBy(values: readonly NewestValue[], sequences: readonly number[]): SettledRow[] {
  return values.flatMap(({ row, overtaken }, index) => {
    const sequence = sequences[index];
    if (sequence === undefined) return [];
    return [{ id: row.id, sequence }, ...overtaken.map((id) => ({ id, sequence: null }))];
  });
}
