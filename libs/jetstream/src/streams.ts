import {
  auditStream,
  completeKey,
  flagEventsStream,
  leasesBucket,
  quotaBucket,
  scheduleStream,
  setAsideStream,
  snapshotBucket,
  usageStream,
} from "@halyard/contracts";
import {
  DiscardPolicy,
  JetStreamApiError,
  type JetStreamManager,
  RetentionPolicy,
  StorageType,
  type StreamInfo,
} from "@nats-io/jetstream";
import { nanos } from "@nats-io/transport-node";

const streamNotFound = 10059;
/**
 * What the broker says to the later one of two who make a stream at once: that the name is in use, or, when
 * it has got that far with the first, that the subjects are.
 */
const saidToTheLater: ReadonlySet<number> = new Set([10058, 10065]);

/** What a stream is, in the two figures by which a change of identity shows. */
export type StreamPosition = {
  /** When the stream was created; a stream that was deleted and made again has another time. */
  createdAt: string;
  lastSequence: number;
};

/** Where the stream stands, or undefined when it does not exist. */
export async function streamPosition(
  manager: JetStreamManager,
  name: string,
): Promise<StreamPosition | undefined> {
  const info = await findStream(manager, name);
  return info === undefined ? undefined : positionOf(info);
}

export type SnapshotPosition = StreamPosition & {
  /** Whether the entry stands that ends a full write. */
  isComplete: boolean;
};

/**
 * Where the snapshot's stream stands, or undefined when it does not exist. The answer comes from the
 * stream's leader, unlike that of a direct get, which any replica gives as far as it has got.
 */
export async function snapshotPosition(
  manager: JetStreamManager,
): Promise<SnapshotPosition | undefined> {
  const info = await findStream(manager, snapshotBucket.streamName, {
    subjects_filter: snapshotBucket.subjectPrefix + completeKey,
  });
  if (info === undefined) return undefined;
  const isComplete = Object.keys(info.state.subjects ?? {}).length > 0;
  return { ...positionOf(info), isComplete };
}

/**
 * Creates the log of domain events unless it exists. At its bound it discards the oldest events, read or
 * not. The relay's leader applies the bound to a log that exists.
 */
export async function ensureFlagEvents(
  manager: JetStreamManager,
  replicas: number,
  maxBytes: number = flagEventsStream.defaultMaxBytes,
): Promise<StreamPosition> {
  return ensureStream(manager, {
    name: flagEventsStream.name,
    subjects: [...flagEventsStream.subjects],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: DiscardPolicy.Old,
    max_age: nanos(flagEventsStream.maxAgeMs),
    max_bytes: maxBytes,
    duplicate_window: nanos(flagEventsStream.duplicateWindowMs),
    num_replicas: replicas,
  });
}

/**
 * Creates the queue of due changes and their outcomes unless it exists. It has no bound in bytes: a flag has
 * at most one change under way in each environment. A full queue that discards would lose changes. One
 * that rejects would stop for good, because each change leaves only after its outcome was added.
 */
export async function ensureSchedule(manager: JetStreamManager, replicas: number): Promise<void> {
  await ensureStream(manager, {
    name: scheduleStream.name,
    subjects: [scheduleStream.due.subject, scheduleStream.resolved.subject],
    retention: RetentionPolicy.Workqueue,
    storage: StorageType.File,
    duplicate_window: nanos(scheduleStream.duplicateWindowMs),
    num_replicas: replicas,
  });
}

/**
 * Within this time a second copy of a message is dropped. The second comes after the acknowledgement
 * of the first or of its original got lost: seconds later, or as long as that outage lasted.
 */
const setAsideDuplicateWindowMs = 10 * 60 * 1000;

/** Makes the stream of messages that nobody can process, unless it is there. */
export async function ensureSetAside(manager: JetStreamManager, replicas: number): Promise<void> {
  await ensureStream(manager, {
    name: setAsideStream.name,
    subjects: [`${setAsideStream.subjectPrefix}>`],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: DiscardPolicy.Old,
    max_age: nanos(setAsideStream.maxAgeMs),
    max_bytes: setAsideStream.maxBytes,
    duplicate_window: nanos(setAsideDuplicateWindowMs),
    num_replicas: replicas,
  });
}

/**
 * Creates the snapshot bucket unless it exists. The settings are those of a JetStream KV bucket with a
 * history of one, so that every KV client reads it.
 */
export async function ensureSnapshot(
  manager: JetStreamManager,
  replicas: number,
): Promise<StreamPosition> {
  return ensureStream(manager, bucketOf(snapshotBucket, replicas));
}

/** Removes every entry before a sequence, except `complete`. */
export async function purgeEntriesBefore(
  manager: JetStreamManager,
  sequence: number,
): Promise<void> {
  // nats-server treats the sequence 1 as no bound.
  if (sequence <= 1) return;
  await manager.streams.purge(snapshotBucket.streamName, {
    // Keys of entries have several tokens, `complete` has one.
    filter: `${snapshotBucket.subjectPrefix}*.>`,
    seq: sequence,
  });
}

/** Removes the entry `complete`, unless a later one than this sequence exists. Readers keep their state. */
export async function purgeComplete(manager: JetStreamManager, upTo: number): Promise<void> {
  await manager.streams.purge(snapshotBucket.streamName, {
    filter: snapshotBucket.subjectPrefix + completeKey,
    seq: upTo + 1,
  });
}

/** Deletes a stream with its messages and consumers; does nothing if it does not exist. */
export async function deleteStream(manager: JetStreamManager, name: string): Promise<void> {
  try {
    await manager.streams.delete(name);
  } catch (error) {
    if (!isStreamNotFound(error)) throw error;
  }
}

/**
 * Makes the queue of what was used, unless it is there. When it is full the broker takes no more: who
 * counts keeps adding up, and sends it later.
 */
export async function ensureUsage(manager: JetStreamManager, replicas: number): Promise<void> {
  await ensureStream(manager, {
    name: usageStream.name,
    subjects: [usageStream.recorded.subject, usageStream.lastSeen.subject],
    retention: RetentionPolicy.Workqueue,
    storage: StorageType.File,
    discard: DiscardPolicy.New,
    max_bytes: usageStream.maxBytes,
    duplicate_window: nanos(usageStream.duplicateWindowMs),
    num_replicas: replicas,
  });
}

/**
 * Creates the queue of changes for the audit log unless it exists. A full queue rejects messages, which wait in the
 * outboxes of their services.
 */
export async function ensureAudit(manager: JetStreamManager, replicas: number): Promise<void> {
  await ensureStream(manager, {
    name: auditStream.name,
    subjects: [auditStream.recorded.subject],
    retention: RetentionPolicy.Workqueue,
    storage: StorageType.File,
    discard: DiscardPolicy.New,
    max_bytes: auditStream.maxBytes,
    duplicate_window: nanos(auditStream.duplicateWindowMs),
    num_replicas: replicas,
  });
}

/** Makes the bucket of used months, unless it is there. */
export async function ensureQuota(manager: JetStreamManager, replicas: number): Promise<void> {
  await ensureStream(manager, bucketOf(quotaBucket, replicas));
}

/** Makes the bucket of slots for streams, unless it is there. */
export async function ensureLeases(manager: JetStreamManager, replicas: number): Promise<void> {
  await ensureStream(manager, bucketOf(leasesBucket, replicas));
}

export type StreamSettings = {
  /** Number of servers that keep each stream: 1, or 3 in a cluster. */
  replicas: number;
  /** Bound of the log of events, if it is not the default. */
  flagEventsMaxBytes?: number | undefined;
};

/**
 * Creates all streams and buckets that do not exist, and returns their names. The exception is the
 * snapshot: only the relay of management creates it, because an edge must never read an empty one.
 */
export async function ensureStreams(
  manager: JetStreamManager,
  { replicas, flagEventsMaxBytes }: StreamSettings,
): Promise<readonly string[]> {
  await Promise.all([
    ensureFlagEvents(manager, replicas, flagEventsMaxBytes),
    ensureAudit(manager, replicas),
    ensureSchedule(manager, replicas),
    ensureSetAside(manager, replicas),
    ensureUsage(manager, replicas),
    ensureQuota(manager, replicas),
    ensureLeases(manager, replicas),
  ]);
  return [flagEventsStream, auditStream, scheduleStream, setAsideStream, usageStream]
    .map(({ name }) => name)
    .concat(quotaBucket.streamName, leasesBucket.streamName);
}

type Bucket = { streamName: string; subjectPrefix: string };

function bucketOf({ streamName, subjectPrefix }: Bucket, replicas: number): NewStream {
  return {
    name: streamName,
    subjects: [`${subjectPrefix}>`],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: DiscardPolicy.New,
    max_msgs_per_subject: 1,
    allow_rollup_hdrs: true,
    deny_delete: true,
    deny_purge: false,
    allow_direct: true,
    num_replicas: replicas,
  };
}

type NewStream = Parameters<JetStreamManager["streams"]["add"]>[0];

async function ensureStream(manager: JetStreamManager, config: NewStream): Promise<StreamPosition> {
  return (await streamPosition(manager, config.name)) ?? create(manager, config);
}

async function create(manager: JetStreamManager, config: NewStream): Promise<StreamPosition> {
  try {
    return positionOf(await manager.streams.add(config));
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || !saidToTheLater.has(error.code)) throw error;
    const made = await findStream(manager, config.name);
    if (made === undefined) throw error;
    return positionOf(made);
  }
}

/** Returns the stream's state; undefined when it does not exist. */
export async function findStream(
  manager: JetStreamManager,
  name: string,
  query?: { subjects_filter: string },
): Promise<StreamInfo | undefined> {
  try {
    return await manager.streams.info(name, query);
  } catch (error) {
    if (isStreamNotFound(error)) return undefined;
    throw error;
  }
}

function positionOf(info: StreamInfo): StreamPosition {
  return { createdAt: info.created, lastSequence: info.state.last_seq };
}

/** Whether the broker said that the stream does not exist. */
function isStreamNotFound(error: unknown): boolean {
  return error instanceof JetStreamApiError && error.code === streamNotFound;
}
