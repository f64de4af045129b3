import { JetStreamApiCodes, JetStreamApiError, type JetStreamManager } from "@nats-io/jetstream";
import { findStream } from "./streams.ts";

/**
 * The state of a work queue's subject. After a crash of nats-server 2.9 a stream can still hold messages
 * that its consumer has acknowledged, up to thousands of them. Therefore the consumer decides what waits.
 * The stream alone decides only until the consumer exists. The messages stay in the stream and cost space.
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

async function countStored(
  manager: JetStreamManager,
  { stream, subject }: WorkQueue,
): Promise<number> {
  const info = await findStream(manager, stream, { subjects_filter: subject });
  return info?.state.subjects?.[subject] ?? 0;
}
