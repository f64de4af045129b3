import { JetStreamApiCodes, JetStreamApiError, type JetStreamManager } from "@nats-io/jetstream";
import { findStream } from "./streams.ts";

/**
 * A work queue. After a crash of nats-server 2.9, its stream can still contain thousands of messages that the consumer
 * has acknowledged, and they stay there. The number of waiting messages is therefore read from the consumer, and from
 * the stream only until the consumer exists.
 */
type WorkQueue = { stream: string; subject: string; consumer: string };

type Backlog = {
  /** Number of messages that are not delivered or not acknowledged yet. */
  waiting: number;
  /** Sequence up to which every message of the subject is acknowledged. */
  ackFloor: number;
};

/** Returns the consumer's backlog; undefined while the consumer does not exist. */
export async function findBacklog(
  manager: JetStreamManager,
  { stream, consumer }: Omit<WorkQueue, "subject">,
): Promise<Backlog | undefined> {
  try {
    const info = await manager.consumers.info(stream, consumer);
    return {
      waiting: info.num_pending + info.num_ack_pending,
      ackFloor: info.ack_floor.stream_seq,
    };
  } catch (error) {
    if (error instanceof JetStreamApiError && missing.includes(error.code)) return undefined;
    throw error;
  }
}

const missing: readonly number[] = [
  JetStreamApiCodes.ConsumerNotFound,
  JetStreamApiCodes.StreamNotFound,
];

/** Returns the number of waiting messages; 0 if the stream does not exist. */
export async function countWaiting(manager: JetStreamManager, queue: WorkQueue): Promise<number> {
  return (await findBacklog(manager, queue))?.waiting ?? (await countStored(manager, queue));
}

async function countStored(
  manager: JetStreamManager,
  { stream, subject }: WorkQueue,
): Promise<number> {
  const info = await findStream(manager, stream, { subjects_filter: subject });
  return info?.state.subjects?.[subject] ?? 0;
}
