import { scheduleStream } from "@halyard/contracts";
import { type Backlog, findBacklog } from "@halyard/jetstream";
import { JetStreamApiCodes, JetStreamApiError, type JetStreamManager } from "@nats-io/jetstream";
import type { Queue } from "./lost-changes.ts";

/**
 * Reads which messages are in the queue between scheduler and management, in either direction. After a
 * crash the stream can hold messages that are acknowledged, so the consumers decide what is in the queue.
 *
 * The order of the requests matters because they are not atomic. Everything up to the end that was read
 * before the consumers counts as gone if they have nothing left. Management publishes an answer before it
 * acknowledges, so the answer to what the first consumer has acknowledged is part of the end read last.
 */
export async function readQueue(manager: JetStreamManager): Promise<Queue> {
  const stream = scheduleStream.name;
  const before = await readEnds(manager);
  const due = await findBacklog(manager, { stream, consumer: scheduleStream.due.consumer });
  const answers = await findBacklog(manager, {
    stream,
    consumer: scheduleStream.resolved.consumer,
  });
  const { last } = await readEnds(manager);
  const first = Math.min(...[due, answers].map((backlog) => firstWaiting(backlog, before)));
  return { first: Math.max(first, before.first), last };
}

/** Returns a sequence before which no message waits for this consumer. */
function firstWaiting(backlog: Backlog | undefined, before: Queue): number {
  if (backlog === undefined) return before.first;
  return backlog.waiting === 0 ? before.last + 1 : backlog.ackFloor + 1;
}

async function readEnds(manager: JetStreamManager): Promise<Queue> {
  try {
    const { state } = await manager.streams.info(scheduleStream.name);
    const { first_seq, last_seq: last } = state;
    return { first: state.messages === 0 ? last + 1 : first_seq, last };
  } catch (error) {
    if (!(error instanceof JetStreamApiError)) throw error;
    if (error.code !== JetStreamApiCodes.StreamNotFound) throw error;
    // An absent stream counts as empty.
    return { first: 1, last: 0 };
  }
}
