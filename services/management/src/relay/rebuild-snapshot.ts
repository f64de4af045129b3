import { completeKey, entryKey, snapshotBucket } from "@halyard/contracts";
import {
  type OutgoingMessage,
  publishFenced,
  recreateSnapshot,
  type StreamPosition,
} from "@halyard/jetstream";
import type { Sql } from "@halyard/postgres";
import type { AddressedEntry } from "../outbox/addressed-entry.ts";
import type { Broker } from "./broker.ts";
import { LeadershipLostError, StreamMovedError } from "./failures.ts";
import { readFullState } from "./full-state.ts";
import type { Lease } from "./lease.ts";
import { recordStream, recordSuperseded } from "./outbox-rows.ts";
import type { SnapshotOptions } from "./synchronise-snapshot.ts";

/**
 * Writes the whole snapshot anew: an empty bucket, every entry as the tables have it at one moment,
 * and last the entry `complete` with a new epoch. Readers keep what they have until they see it.
 *
 * Rows of the outbox that were committed before that moment are settled by it; if they were sent
 * afterwards, an older value could overtake a newer one. What commits later is sent as usual.
 *
 * Answers where the snapshot stands.
 */
export async function rebuildSnapshot(
  sql: Sql,
  lease: Lease,
  broker: Broker,
  options: SnapshotOptions,
): Promise<StreamPosition> {
  const epoch = options.newEpoch();
  broker.logger.info({ epoch }, "writing the snapshot anew");
  // Nobody but the leader may delete what is there.
  if (!options.isLeading()) throw new LeadershipLostError("the lease ended before a full write");
  const { createdAt, lastSequence: start } = await recreateSnapshot(
    broker.manager,
    broker.replicas,
  );
  let lastSequence = start;
  const supersededRows = await readFullState(sql, options.plans, async (entries) => {
    if (!options.isLeading()) throw new LeadershipLostError("the lease ended during a full write");
    lastSequence = await publishAll(broker, entries.map(outgoing), lastSequence);
  });

  // Recorded before `complete`: if we die in between, the next leader starts over.
  for (let from = 0; from < supersededRows.length; from += recordedAtOnce)
    await lease.recordAsLeader((tx) =>
      recordSuperseded(tx, supersededRows.slice(from, from + recordedAtOnce)),
    );
  await lease.recordAsLeader((tx) =>
    recordStream(tx, "snapshot", { createdAt, lastSequence, baseSequence: lastSequence }),
  );
  const complete = {
    subject: snapshotBucket.subjectPrefix + completeKey,
    payload: JSON.stringify({ epoch }),
  };
  const baseSequence = lastSequence;
  lastSequence = await publishAll(broker, [complete], baseSequence);
  await lease.recordAsLeader((tx) =>
    recordStream(tx, "snapshot", { createdAt, lastSequence, baseSequence }),
  );
  broker.logger.info({ epoch, entries: lastSequence - start - 1 }, "the snapshot is complete");
  return { createdAt, lastSequence };
}

/** A part takes milliseconds to record, far from any time-out. */
const recordedAtOnce = 5_000;

/** What is on its way to the broker at once, which has two seconds to acknowledge it. */
const bytesAtOnce = 4 * 1024 * 1024;

function outgoing({ address, value }: AddressedEntry): OutgoingMessage {
  return {
    subject: snapshotBucket.subjectPrefix + entryKey(address),
    payload: JSON.stringify(value),
  };
}

async function publishAll(
  broker: Broker,
  messages: readonly OutgoingMessage[],
  lastSequence: number,
): Promise<number> {
  let next = lastSequence;
  for (let from = 0; from < messages.length; ) {
    const batch = upTo(bytesAtOnce, messages, from);
    const result = await publishFenced(broker.client, batch, next);
    if (result.failure !== undefined)
      throw new StreamMovedError("the snapshot could not be written", { cause: result.failure });
    from += batch.length;
    next += batch.length;
  }
  return next;
}

/** Messages from a position on, as many as fit, and at least one. */
function upTo(
  bytes: number,
  messages: readonly OutgoingMessage[],
  from: number,
): readonly OutgoingMessage[] {
  let end = from;
  let size = 0;
  while (end < messages.length && (end === from || size < bytes)) {
    size += messages[end]?.payload.length ?? 0;
    end += 1;
  }
  return messages.slice(from, end);
}
