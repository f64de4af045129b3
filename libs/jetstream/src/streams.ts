import { setTimeout as delay } from "node:timers/promises";
import {
  auditStream,
  deadLetterStream,
  evaluationsStream,
  flagEventsStream,
  peopleBucket,
  quotaBucket,
  scheduleStream,
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
/** Error codes for the later of two concurrent creations: the name is in use, or the subjects are. */
const createdConcurrently: ReadonlySet<number> = new Set([10058, 10065]);

/** The creation time and the end of a stream. Readers detect by them that a stream was replaced. */
export type StreamPosition = {
  /** Creation time. It differs after the stream was deleted and created again. */
  createdAt: string;
  lastSequence: number;
};

/** Returns the position of a stream; undefined if it does not exist. */
export async function streamPosition(
  manager: JetStreamManager,
  name: string,
): Promise<StreamPosition | undefined> {
  const info = await findStream(manager, name);
  return info === undefined ? undefined : positionOf(info);
}

type NewStream = Parameters<JetStreamManager["streams"]["add"]>[0];

/** Creates a stream or a bucket, or adds missing subjects to an existing one, and returns its position. */
type Ensure = (manager: JetStreamManager, replicas: number) => Promise<StreamPosition>;

type StreamConfig = Omit<NewStream, "num_replicas" | "storage">;

function ensures(config: StreamConfig): Ensure {
  const stored = { ...config, storage: StorageType.File };
  return (manager, replicas) => ensureStream(manager, { ...stored, num_replicas: replicas });
}

/**
 * Returns the configuration of a work queue. With a size limit, a full queue rejects messages, and the publishers keep
 * them.
 */
function queue(
  { name, duplicateWindowMs, maxBytes }: Queue,
  subjects: readonly string[],
): StreamConfig {
  return {
    name,
    subjects: [...subjects],
    retention: RetentionPolicy.Workqueue,
    duplicate_window: nanos(duplicateWindowMs),
    ...(maxBytes !== undefined && { discard: DiscardPolicy.New, max_bytes: maxBytes }),
  };
}
type Queue = { name: string; duplicateWindowMs: number; maxBytes?: number };

/** Returns the configuration of a JetStream KV bucket with a history of one, which every KV client can read. */
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
 * Time during which the broker drops a second copy of a dead letter. A second copy follows if the acknowledgement of
 * the first copy, or of the original, was lost: seconds later, or after an outage.
 */
const deadLetterDuplicateWindowMs = 10 * 60 * 1000;

const configs = {
  flagEvents: {
    name: flagEventsStream.name,
    subjects: [...flagEventsStream.allSubjects],
    retention: RetentionPolicy.Limits,
    discard: DiscardPolicy.Old,
    max_age: nanos(flagEventsStream.maxAgeMs),
    duplicate_window: nanos(flagEventsStream.duplicateWindowMs),
  },
  schedule: queue(scheduleStream, [scheduleStream.due.subject, scheduleStream.resolved.subject]),
  usage: queue(usageStream, [usageStream.recorded.subject, usageStream.lastSeen.subject]),
  evaluations: queue(evaluationsStream, [evaluationsStream.reported.subject]),
  audit: queue(auditStream, [auditStream.recorded.subject]),
  deadLetters: {
    name: deadLetterStream.name,
    subjects: [`${deadLetterStream.subjectPrefix}>`],
    retention: RetentionPolicy.Limits,
    discard: DiscardPolicy.Old,
    max_age: nanos(deadLetterStream.maxAgeMs),
    max_bytes: deadLetterStream.maxBytes,
    duplicate_window: nanos(deadLetterDuplicateWindowMs),
  },
  snapshot: bucket(snapshotBucket),
  quota: bucket(quotaBucket),
  people: bucket(peopleBucket),
} satisfies Record<string, StreamConfig>;

/**
 * Creates the log of domain events if it does not exist. At its size limit, the log discards its oldest events, even
 * unread ones. The relay's leader applies the limit to an existing log.
 */
export async function ensureFlagEvents(
  manager: JetStreamManager,
  replicas: number,
  maxBytes: number = flagEventsStream.defaultMaxBytes,
): Promise<StreamPosition> {
  return ensures({ ...configs.flagEvents, max_bytes: maxBytes })(manager, replicas);
}

/**
 * Creates the queue of due changes and their outcomes. It has no size limit, because a flag has at most one sent change
 * in each environment. A full queue that discards would lose changes. A full queue that rejects would deadlock, because
 * a change leaves it only after its outcome was added.
 */
export const ensureSchedule = ensures(configs.schedule);
export const ensureUsage = ensures(configs.usage);
export const ensureEvaluations = ensures(configs.evaluations);
export const ensureAudit = ensures(configs.audit);
export const ensureDeadLetters = ensures(configs.deadLetters);
export const ensureSnapshot = ensures(configs.snapshot);
export const ensureQuota = ensures(configs.quota);
export const ensurePeople = ensures(configs.people);

/** The settings of every stream. Replicas and the size of the event log are settings of the installation. */
export const expectedStreams: readonly StreamConfig[] = Object.values(configs);

export type StreamSettings = {
  /** Number of servers that keep each stream: 1, or 3 in a cluster. */
  replicas: number;
  /** Size limit of the log of events, if it differs from the default. */
  flagEventsMaxBytes?: number | undefined;
};

/**
 * Creates missing streams and buckets, adds missing subjects to existing ones, and returns the names of all. The
 * exception is the snapshot: only the relay creates it, because an edge must never read an empty one.
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
    ensureEvaluations(manager, replicas),
    ensureQuota(manager, replicas),
  ]);
  const streams = [flagEventsStream, auditStream, scheduleStream, deadLetterStream, usageStream];
  return [...streams, evaluationsStream].map(({ name }) => name).concat(quotaBucket.streamName);
}

/** Deletes a stream with its messages and consumers, if it exists. */
export async function deleteStream(manager: JetStreamManager, name: string): Promise<void> {
  try {
    await manager.streams.delete(name);
    // The broker has answered, so the directory is removed.
    existing.get(manager)?.delete(name);
  } catch (error) {
    if (!isStreamNotFound(error)) throw error;
  }
}

export type StreamSize = {
  bytes: number;
  /** Size limit that the broker applies; undefined for none. */
  maxBytes: number | undefined;
};

/**
 * Sets the size limit of an existing stream, and returns its size; undefined if the stream does not exist.
 *
 * A limit below the current size is not applied, because the broker would discard messages immediately.
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

/**
 * Time between noticing that a stream was deleted and creating it again. nats-server 2.9 forgets a stream before it
 * removes the stream's directory. A stream that is created meanwhile loses its files: the server accepts messages for
 * it, and never delivers them. On a busy disk the removal takes more than a second.
 */
const removalMs = 3_000;
/** Names of the streams that existed when a manager last looked. */
const existing = new WeakMap<JetStreamManager, Set<string>>();

async function ensureStream(manager: JetStreamManager, config: NewStream): Promise<StreamPosition> {
  const known = existing.get(manager) ?? new Set();
  existing.set(manager, known);
  const info = await findStream(manager, config.name);
  if (info === undefined && known.delete(config.name)) await delay(removalMs);
  const position = await (info === undefined
    ? create(manager, config)
    : addSubjects(manager, config, info));
  known.add(config.name);
  return position;
}

/** Adds missing subjects to a stream. */
async function addSubjects(
  manager: JetStreamManager,
  config: NewStream,
  info: StreamInfo,
): Promise<StreamPosition> {
  const subjects = info.config.subjects ?? [];
  const missing = (config.subjects ?? []).filter(
    (subject) => !subjects.some((pattern) => isCovered(subject, pattern)),
  );
  // A release may publish to subjects that did not exist when the stream was created. Other settings and subjects are
  // kept, because an operator may have changed them, and an older release may use them.
  if (missing.length > 0)
    await manager.streams.update(config.name, { subjects: subjects.concat(missing) });
  return positionOf(info);
}

/** Returns whether a subject matches a pattern, which may have wildcards. */
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

/** Returns the state of a stream; undefined if it does not exist. */
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

export function positionOf(info: StreamInfo): StreamPosition {
  return { createdAt: info.created, lastSequence: info.state.last_seq };
}

/** Returns whether an error means that the stream does not exist. */
function isStreamNotFound(error: unknown): boolean {
  return error instanceof JetStreamApiError && error.code === streamNotFound;
}
