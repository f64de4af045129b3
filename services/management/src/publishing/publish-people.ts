import { completeAt, type EntrySigner } from "@halyard/api-keys";
import {
  type PeopleComplete,
  peopleBucket,
  peopleCompleteKey,
  peopleSignaturePrefix,
} from "@halyard/contracts";
import {
  ensurePeople,
  type OutgoingMessage,
  publishFenced,
  type StreamPosition,
  streamPosition,
} from "@halyard/jetstream";
import { findPeopleComplete } from "@halyard/people";
import type { Sql } from "@halyard/postgres";
import type { WakeUp } from "@halyard/timing";
import {
  entriesAfter,
  payloadOf,
  recordSequences,
  removeEntries,
  type StoredEntry,
  unsentEntries,
} from "../outbox/people-entries.ts";
import { type Broker, StreamMovedError } from "./broker.ts";
import { LeadershipLostError, type Lease } from "./lease.ts";
import { recordAdvanced, recordedStream, recordRebuilding, recordStream } from "./records.ts";

/**
 * Publishes the people bucket during a term of the relay's leader. If the bucket is not the recorded one, the leader writes
 * it again from the table, under a new epoch: after a deletion of the bucket, a restore of the database, or a crash
 * between sending and recording.
 */
type PeopleOptions = {
  sql: Sql;
  lease: Lease;
  broker: Broker;
  /** If undefined, entries are not signed. */
  signer: EntrySigner | undefined;
  newEpoch: () => string;
  isLeading: () => boolean;
  wakeUp: WakeUp;
};

/** Entries of a batch, which a slow broker must acknowledge in time. */
const batchSize = 500;
/** Interval of looking for values whose notification was lost, and of checking the stream. */
const pollIntervalMs = 1_000;

export async function publishPeople(options: PeopleOptions, signal: AbortSignal): Promise<void> {
  const { sql, broker, wakeUp } = options;
  let position = await synchronize(options);
  let checkedMs = Number.NEGATIVE_INFINITY;
  while (!signal.aborted) {
    const entries = await unsentEntries(sql, batchSize);
    position = await send(options, position, entries);
    if (entries.length === batchSize) continue;
    if (performance.now() - checkedMs >= pollIntervalMs) {
      checkedMs = performance.now();
      await removeEnded(options);
      await checkContinues(broker, position);
    }
    await wakeUp.sleep(pollIntervalMs, signal);
  }
}

async function checkContinues({ manager }: Broker, position: StreamPosition): Promise<void> {
  const found = await streamPosition(manager, peopleBucket.streamName);
  if (found?.createdAt !== position.createdAt || found.lastSequence !== position.lastSequence)
    throw new StreamMovedError(
      "the people bucket was deleted, or another client has written to it",
    );
}

async function synchronize(options: PeopleOptions): Promise<StreamPosition> {
  const { sql, broker, signer } = options;
  const position = await streamPosition(broker.manager, peopleBucket.streamName);
  const recorded = await recordedStream(sql, "people");
  const isRecorded =
    recorded?.createdAt === position?.createdAt &&
    recorded?.lastSequence === position?.lastSequence &&
    (recorded?.baseSequence ?? 0) < (position?.lastSequence ?? 0);
  if (position === undefined || !isRecorded) return rebuild(options);
  const found = await findPeopleComplete(broker.manager);
  return found?.complete.signed_by === signer?.id && found !== undefined
    ? position
    : rebuild(options);
}

/**
 * Writes all entries after those of the former epoch. Readers keep their state until they find the new `complete`, which
 * is absent while the former entries are removed.
 */
async function rebuild(options: PeopleOptions): Promise<StreamPosition> {
  const { sql, lease, broker } = options;
  const { manager, replicas, logger } = broker;
  const start = await ensurePeople(manager, replicas);
  const epoch = options.newEpoch();
  logger.info({ epoch }, "writing the people bucket again");
  await lease.recordAsLeader((tx) => recordRebuilding(tx, start, "people"));
  let position: StreamPosition = start;
  let last = "";
  for (;;) {
    const entries = await entriesAfter(sql, last, batchSize);
    if (entries.length === 0) break;
    position = await send(options, position, entries);
    last = entries.at(-1)?.key ?? last;
  }
  if (!options.isLeading()) throw new LeadershipLostError("the lease ended during a rebuild");
  // nats-server treats the sequence 1 as absent, and would remove all entries.
  if (start.lastSequence > 0)
    await manager.streams.purge(peopleBucket.streamName, { seq: start.lastSequence + 1 });
  const complete = await completeMessage(options, {
    complete: { epoch, from: start.lastSequence + 1 },
    sequence: position.lastSequence + 1,
  });
  const lastSequence = await publish(options, position, [complete]);
  const { createdAt } = position;
  await lease.recordAsLeader((tx) =>
    recordStream(tx, "people", { createdAt, lastSequence, baseSequence: lastSequence - 1 }),
  );
  return { createdAt, lastSequence };
}

async function completeMessage(
  { signer }: PeopleOptions,
  { complete, sequence }: { complete: PeopleComplete; sequence: number },
): Promise<OutgoingMessage> {
  const subject = peopleBucket.subjectPrefix + peopleCompleteKey;
  if (signer === undefined) return { subject, payload: JSON.stringify(complete) };
  const payload = JSON.stringify({ ...complete, signed_by: signer.id });
  return {
    subject,
    payload: await signer.sign(peopleSignaturePrefix + completeAt(sequence), payload),
  };
}

/** Sends entries and records them. Returns the position after them. */
async function send(
  options: PeopleOptions,
  position: StreamPosition,
  entries: readonly StoredEntry[],
): Promise<StreamPosition> {
  if (entries.length === 0) return position;
  const { lease, signer } = options;
  const messages = await Promise.all(
    entries.map(async (entry) => {
      const payload = payloadOf(entry);
      return {
        subject: peopleBucket.subjectPrefix + entry.key,
        payload: (await signer?.sign(peopleSignaturePrefix + entry.key, payload)) ?? payload,
      };
    }),
  );
  const { lastSequence: recordedBefore } = position;
  const lastSequence = await publish(options, position, messages);
  const sent = entries.map((entry, index) => ({ ...entry, sequence: recordedBefore + index + 1 }));
  await lease.recordAsLeader(async (tx) => {
    await recordSequences(tx, sent);
    await recordAdvanced(tx, "people", { lastSequence, recordedBefore });
  });
  return { ...position, lastSequence };
}

/** Publishes messages at the end of the stream, or throws: the next term writes the bucket again. */
async function publish(
  { broker, isLeading }: PeopleOptions,
  { lastSequence }: StreamPosition,
  messages: readonly OutgoingMessage[],
): Promise<number> {
  if (!isLeading()) throw new LeadershipLostError("the lease ended before a batch was sent");
  const { sequences, failure } = await publishFenced(broker.client, messages, lastSequence);
  if (failure !== undefined) throw failure;
  return lastSequence + sequences.length;
}

/** Removes entries without effect from the table and the bucket. A crash in between leaves them in the bucket. */
async function removeEnded({ lease, broker }: PeopleOptions): Promise<void> {
  const keys = await lease.recordAsLeader((tx) => removeEntries(tx, batchSize));
  for (const key of keys)
    await broker.manager.streams.purge(peopleBucket.streamName, {
      filter: peopleBucket.subjectPrefix + key,
    });
}
