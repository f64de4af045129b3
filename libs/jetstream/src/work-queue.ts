import { JetStreamApiCodes, JetStreamApiError, type JetStreamManager } from "@nats-io/jetstream";
import { findStream } from "./streams.ts";

/**
 * The state of a work queue's subject. After a crash of nats-server 2.9 a stream can still hold messages
 * that its consumer has acknowledged, up to thousands of them. Therefore the consumer decides what waits.
 * The stream alone decides only until the consumer exists.
 */
export type WorkQueue = { stream: string; subject: string; consumer: string };

export type Backlog = {
  /** Messages that are not delivered yet, or not acknowledged. */
  waiting: number;
  /** Every message of the subject up to this sequence is acknowledged. */
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

/** Returns how many messages wait; 0 when the stream does not exist. */
export async function countWaiting(manager: JetStreamManager, queue: WorkQueue): Promise<number> {
  return (await findBacklog(manager, queue))?.waiting ?? (await countStored(manager, queue));
}

/** Deletes what the consumer has acknowledged and the stream still holds; returns how many messages. */
export async function purgeAcknowledged(
  manager: JetStreamManager,
  queue: WorkQueue,
): Promise<number> {
  // In this order: messages that are acknowledged in between cause only a needless purge.
  const stored = await countStored(manager, queue);
  const backlog = await findBacklog(manager, queue);
  if (backlog === undefined || backlog.ackFloor === 0 || stored <= backlog.waiting) return 0;
  const { purged } = await manager.streams.purge(queue.stream, {
    filter: queue.subject,
    seq: backlog.ackFloor + 1,
  });
  return purged;
}

async function countStored(
  manager: JetStreamManager,
  { stream, subject }: WorkQueue,
): Promise<number> {
  const info = await findStream(manager, stream, { subjects_filter: subject });
  return info?.state.subjects?.[subject] ?? 0;
}
