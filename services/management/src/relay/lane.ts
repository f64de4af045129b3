import type { EntrySigner } from "@halyard/api-keys";
import { type SnapshotRevision, snapshotBatchEntries, snapshotBucket } from "@halyard/contracts";
import { type OutgoingMessage, publishFenced } from "@halyard/jetstream";
import type { Sql } from "@halyard/postgres";
import type { Publications } from "../outbox/publications.ts";
import type { Broker } from "./broker.ts";
import { LeadershipLostError, StreamMovedError } from "./failures.ts";
import type { Lease } from "./lease.ts";
import {
  recordAdvanced,
  recordSent,
  type StreamName,
  type UnsentRow,
  unsentEntries,
  unsentEvents,
} from "./outbox-rows.ts";
import { signedPayload } from "./signed-payload.ts";

/**
 * A lane publishes one stream's rows of the outbox: read what is unsent, publish it behind the
 * stream's last sequence, record what was acknowledged, tell who waits for it. One batch is under
 * way at a time, so the order of rows is the order of messages.
 */
export type Lane = {
  /** Publishes until nothing is left. Answers how many messages it sent. */
  drain(): Promise<number>;
  /**
   * Publishes messages that have no rows, as one batch. Rows that were unsent when the caller read the
   * values are published afterwards, so the newest value of an entry is always the last one.
   */
  write(messages: readonly OutgoingMessage[]): Promise<void>;
  /** The last sequence that is recorded as published. */
  lastSequence(): number;
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
  const unsent = stream === "events" ? unsentEvents : unsentEntries;
  let lastSequence = options.lastSequence;

  return {
    async drain() {
      let sent = 0;
      for (;;) {
        const rows = await unsent(sql, batchBounds);
        if (rows.length === 0) return sent;
        await publish(rows);
        sent += rows.length;
      }
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

  async function publish(rows: readonly UnsentRow[]): Promise<void> {
    if (!options.isLeading()) throw new LeadershipLostError("the lease has ended");
    const messages = await Promise.all(rows.map(outgoing));
    const result = await publishFenced(broker.client, messages, lastSequence);
    const acknowledged = rows.flatMap((row, index) => {
      const sequence = result.sequences[index];
      return sequence === undefined ? [] : [{ id: row.id, subject: row.subject, sequence }];
    });
    const revision = revisionOf(acknowledged.at(-1)?.sequence);
    publications.confirm(
      acknowledged.map((message) => message.id),
      revision,
    );
    if (acknowledged.length > 0) {
      const settled = await lease.recordAsLeader((tx) =>
        recordSent(tx, stream, acknowledged, { recordedBefore: lastSequence, revision }),
      );
      publications.confirm(settled, revision);
    }
    if (result.failure !== undefined)
      throw new StreamMovedError("not everything was acknowledged", { cause: result.failure });
    lastSequence += rows.length;
    if (acknowledged.at(-1)?.sequence !== lastSequence)
      throw new StreamMovedError("the broker had seen a message before");
  }

  function revisionOf(sequence: number | undefined): SnapshotRevision | undefined {
    if (options.epoch === undefined || sequence === undefined) return undefined;
    return { epoch: options.epoch, revision: sequence };
  }

  async function outgoing(row: UnsentRow): Promise<OutgoingMessage> {
    const { subject, payload, messageId } = row;
    if (stream === "events") return { subject, payload, messageId };
    return {
      subject: snapshotBucket.subjectPrefix + subject,
      payload: await signedPayload(options.signer, subject, payload),
    };
  }
}
