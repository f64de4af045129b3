import {
  auditStream,
  completeKey,
  deadLetterStream,
  flagEventsStream,
  leaseKey,
  leasesBucket,
  quotaBucket,
  scheduleStream,
  snapshotBucket,
  usageStream,
} from "@halyard/contracts";
import {
  DiscardPolicy,
  JetStreamApiError,
  type JetStreamClient,
  type JetStreamManager,
  RetentionPolicy,
  StorageType,
  type StreamInfo,
} from "@nats-io/jetstream";
import { nanos } from "@nats-io/transport-node";

const streamNotFound = 10059;
/** Error codes for the later of two concurrent creations: the name is in use, or the subjects are. */
const createdConcurrently: ReadonlySet<number> = new Set([10058, 10065]);

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

type NewStream = Parameters<JetStreamManager["streams"]["add"]>[0];

/** Creates a stream or a bucket, or adds the subjects that an existing one lacks, and returns its position. */
type Ensure = (manager: JetStreamManager, replicas: number) => Promise<StreamPosition>;

function ensures(config: Omit<NewStream, "num_replicas" | "storage">): Ensure {
  const stored = { ...config, storage: StorageType.File };
  return (manager, replicas) => ensureStream(manager, { ...stored, num_replicas: replicas });
}

/**
 * A queue of work for other services. With a bound, a full queue rejects messages, and publishers keep them:
 * edges add up, outboxes wait.
 */
function queue(
  { name, duplicateWindowMs, maxBytes }: Queue,
  subjects: readonly string[],
): Omit<NewStream, "num_replicas" | "storage"> {
  return {
    name,
    subjects: [...subjects],
    retention: RetentionPolicy.Workqueue,
    duplicate_window: nanos(duplicateWindowMs),
    ...(maxBytes !== undefined && { discard: DiscardPolicy.New, max_bytes: maxBytes }),
  };
}
type Queue = { name: string; duplicateWindowMs: number; maxBytes?: number };

/** A JetStream KV bucket with a history of one, so that every KV client reads it. */
function bucket({ streamName, subjectPrefix }: { streamName: string; subjectPrefix: string }) {
  return {
    name: streamName,
    subjects: [`${subjectPrefix}>`],
    retention: RetentionPolicy.Limits,
    discard: DiscardPolicy.New,
    max_msgs_per_subject: 1,
    allow_rollup_hdrs: true,
    deny_delete: true,
    deny_purge: false,
    allow_direct: true,
  };
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
  const ensure = ensures({
    name: flagEventsStream.name,
    subjects: [...flagEventsStream.subjects],
    retention: RetentionPolicy.Limits,
    discard: DiscardPolicy.Old,
    max_age: nanos(flagEventsStream.maxAgeMs),
    max_bytes: maxBytes,
    duplicate_window: nanos(flagEventsStream.duplicateWindowMs),
  });
  return ensure(manager, replicas);
}

/**
 * The queue of due changes and their outcomes has no bound in bytes: a flag has at most one change under way in
 * each environment. A full queue that discards would lose changes. One that rejects would stop for good, because
 * each change leaves only after its outcome was added.
 */
export const ensureSchedule = ensures(
  queue(scheduleStream, [scheduleStream.due.subject, scheduleStream.resolved.subject]),
);
export const ensureUsage = ensures(
  queue(usageStream, [usageStream.recorded.subject, usageStream.lastSeen.subject]),
);
export const ensureAudit = ensures(queue(auditStream, [auditStream.recorded.subject]));

/**
 * Time in which the broker drops a second copy of a message. A second copy follows when the acknowledgement of
 * the first, or of the original, was lost: seconds later, or after an outage.
 */
const deadLetterDuplicateWindowMs = 10 * 60 * 1000;

export const ensureDeadLetters = ensures({
  name: deadLetterStream.name,
  subjects: [`${deadLetterStream.subjectPrefix}>`],
  retention: RetentionPolicy.Limits,
  discard: DiscardPolicy.Old,
  max_age: nanos(deadLetterStream.maxAgeMs),
  max_bytes: deadLetterStream.maxBytes,
  duplicate_window: nanos(deadLetterDuplicateWindowMs),
});

export const ensureSnapshot = ensures(bucket(snapshotBucket));
export const ensureQuota = ensures(bucket(quotaBucket));
export const ensureLeases = ensures(bucket(leasesBucket));

/**
 * Creates the bucket of open streams and marks it as established, so that edges admit streams immediately. To
 * be called in a new installation only, because the mark says that the bucket did not replace a lost one.
 */
export async function establishLeases(options: {
  client: JetStreamClient;
  manager: JetStreamManager;
  replicas: number;
}): Promise<void> {
  await ensureLeases(options.manager, options.replicas);
  await options.client.publish(leasesBucket.subjectPrefix + leaseKey.established, "{}");
}

export type StreamSettings = {
  /** Number of servers that keep each stream: 1, or 3 in a cluster. */
  replicas: number;
  /** Bound of the log of events, if it is not the default. */
  flagEventsMaxBytes?: number | undefined;
};

/**
 * Creates all streams and buckets that do not exist, adds missing subjects to the others, and returns their
 * names. The exception is the snapshot: only the relay of management creates it, because an edge must never read an empty one.
 */
export async function ensureStreams(
  manager: JetStreamManager,
  { replicas, flagEventsMaxBytes }: StreamSettings,
): Promise<readonly string[]> {
  await Promise.all([
    ensureFlagEvents(manager, replicas, flagEventsMaxBytes),
    ensureAudit(manager, replicas),
    ensureSchedule(manager, replicas),
    ensureDeadLetters(manager, replicas),
    ensureUsage(manager, replicas),
    ensureQuota(manager, replicas),
    ensureLeases(manager, replicas),
  ]);
  return [flagEventsStream, auditStream, scheduleStream, deadLetterStream, usageStream]
    .map(({ name }) => name)
    .concat(quotaBucket.streamName, leasesBucket.streamName);
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

export type StreamSize = {
  bytes: number;
  /** The bound that the broker applies; undefined for none. */
  maxBytes: number | undefined;
};

/**
 * Gives an existing stream a bound in bytes, and returns its size; undefined when it does not exist.
 *
 * A bound below the present size is not applied, because the broker would discard messages immediately.
 */
export async function boundStream(
  manager: JetStreamManager,
  name: string,
  maxBytes: number,
): Promise<StreamSize | undefined> {
  const info = await findStream(manager, name);
  if (info === undefined) return undefined;
  if (info.config.max_bytes === maxBytes || info.state.bytes > maxBytes) return sizeOf(info);
  return sizeOf(await manager.streams.update(name, { max_bytes: maxBytes }));
}

function sizeOf({ config, state }: StreamInfo): StreamSize {
  return { bytes: state.bytes, maxBytes: config.max_bytes > 0 ? config.max_bytes : undefined };
}

async function ensureStream(manager: JetStreamManager, config: NewStream): Promise<StreamPosition> {
  const info = await findStream(manager, config.name);
  if (info === undefined) return create(manager, config);
  const existing = info.config.subjects ?? [];
  const missing = (config.subjects ?? []).filter(
    (subject) => !existing.some((pattern) => isCovered(subject, pattern)),
  );
  // A release may publish to subjects that did not exist when the stream was created. Other settings and
  // subjects stay, because an operator may have changed them, and an older release may use them.
  if (missing.length > 0)
    await manager.streams.update(config.name, { subjects: existing.concat(missing) });
  return positionOf(info);
}

/** Returns whether a stream with this subject, which may have wildcards, takes messages of the other. */
function isCovered(subject: string, pattern: string): boolean {
  const tokens = subject.split(".");
  const patterns = pattern.split(".");
  const isOpen = patterns.at(-1) === ">";
  return (
    (isOpen ? patterns.length <= tokens.length : patterns.length === tokens.length) &&
    patterns.every((each, at) => each === "*" || each === ">" || each === tokens[at])
  );
}

async function create(manager: JetStreamManager, config: NewStream): Promise<StreamPosition> {
  try {
    return positionOf(await manager.streams.add(config));
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || !createdConcurrently.has(error.code)) throw error;
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
