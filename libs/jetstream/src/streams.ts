import { completeKey, flagEventsStream, snapshotBucket } from "@halyard/contracts";
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
/** Another process created the same stream a moment before (JetStream error "stream name already in use"). */
const streamNameInUse = 10058;

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

/** Makes the log of domain events unless it is there. */
export async function ensureFlagEvents(
  manager: JetStreamManager,
  replicas: number,
): Promise<StreamPosition> {
  const existing = await findStream(manager, flagEventsStream.name);
  if (existing !== undefined) return positionOf(existing);
  return create(manager, {
    name: flagEventsStream.name,
    subjects: [...flagEventsStream.subjects],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: DiscardPolicy.Old,
    max_age: nanos(flagEventsStream.maxAgeMs),
    duplicate_window: nanos(flagEventsStream.duplicateWindowMs),
    num_replicas: replicas,
  });
}

/**
 * Makes the snapshot bucket anew, empty. The settings are those of a JetStream KV bucket with a
 * history of one, so that every KV client reads it.
 */
export async function recreateSnapshot(
  manager: JetStreamManager,
  replicas: number,
): Promise<StreamPosition> {
  if ((await findStream(manager, snapshotBucket.streamName)) !== undefined)
    await manager.streams.delete(snapshotBucket.streamName);
  return create(manager, {
    name: snapshotBucket.streamName,
    subjects: [`${snapshotBucket.subjectPrefix}>`],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: DiscardPolicy.New,
    max_msgs_per_subject: 1,
    allow_rollup_hdrs: true,
    deny_delete: true,
    deny_purge: false,
    allow_direct: true,
    num_replicas: replicas,
  });
}

async function create(
  manager: JetStreamManager,
  config: Parameters<JetStreamManager["streams"]["add"]>[0],
): Promise<StreamPosition> {
  try {
    return positionOf(await manager.streams.add(config));
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || error.code !== streamNameInUse) throw error;
    return positionOf(await manager.streams.info(config.name));
  }
}

async function findStream(
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
