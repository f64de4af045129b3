import { scheduleStream } from "@halyard/contracts";
import { type Backlog, findBacklog, isBrokerUnavailable } from "@halyard/jetstream";
import { isOutage, type Sql } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import { JetStreamApiCodes, JetStreamApiError, type JetStreamManager } from "@nats-io/jetstream";
import type { Logger } from "pino";
import { listSent } from "./dispatch-store.ts";
import type { SendDue } from "./send-due.ts";

/**
 * Finds changes that are marked as sent while nobody works on them: the process died before it had
 * sent them, or the broker lost the message, or the answer. A change counts as lost when it is still
 * under way after all has left the queue that was there when it was. It is sent again, with the same id:
 * management knows what it has applied, and answers again. No clock has a part in this.
 */
const pollIntervalMs = 2_000;
const pageSize = 1_000;

export function watchForLostMessages(options: {
  sql: Sql;
  canSend: () => boolean;
  manager: JetStreamManager;
  send: SendDue;
  logger: Logger;
}): { stop(): Promise<void> } {
  const { sql, logger } = options;
  let watched: Watched = new Map();

  async function look(): Promise<void> {
    if (!options.canSend()) return;
    // In this order: what was settled in between is in neither.
    const queue = await readQueue(options.manager);
    const found = findLostChanges(await listSent(sql, pageSize), queue, watched);
    const { lost } = found;
    watched = found.watched;
    if (lost.length === 0) return;
    logger.warn(
      { changes: lost.length, stream: scheduleStream.name },
      "lost messages are sent again",
    );
    await options.send(lost, { again: true });
  }

  return startInterval(look, {
    intervalMs: pollIntervalMs,
    isExpected: (error) => isOutage(error) || isBrokerUnavailable(error),
    onFailure: (err) => logger.warn({ err }, "not looking for lost messages now"),
  });
}

/**
 * Decides which changes that are marked as sent are lost: nobody works on them. The queue between scheduler
 * and management holds a message until its effect is recorded, and numbers what is put into it. So a change is
 * lost when it is still under way and all that was in the queue after it was sent has left it: at first what
 * was there one look after it was found under way, which has its message if it was ever sent; then what
 * was there when that had left, which has the answer. An empty queue says both at once.
 */
export type Queue = {
  /** The number of the first message that it holds; after the last one when it holds none. */
  first: number;
  /** The number of the message that was put there last, also when that has left. */
  last: number;
};

/** How far each change is that is under way. */
export type Watched = ReadonlyMap<string, "seen" | Waiting>;
type Waiting = { for: "message" | "answer"; upTo: number };

/** The queue was read before the changes: what was settled in between is in neither. */
export function findLostChanges<Change extends { id: string }>(
  underWay: readonly Change[],
  queue: Queue,
  before: Watched,
): { lost: Change[]; watched: Watched } {
  const lost: Change[] = [];
  const watched = new Map<string, "seen" | Waiting>();
  for (const change of underWay) {
    const now = advance(before.get(change.id), queue);
    if (now === "lost") lost.push(change);
    // It is going to be sent again, and then is as one that was just found.
    watched.set(change.id, now === "lost" ? "seen" : now);
  }
  return { lost, watched };
}

function advance(before: "seen" | Waiting | undefined, queue: Queue): "seen" | Waiting | "lost" {
  if (before === undefined) return "seen";
  const waiting: Waiting = before === "seen" ? { for: "message", upTo: queue.last } : before;
  if (!hasLeft(waiting.upTo, queue)) return waiting;
  if (waiting.for === "answer") return "lost";
  return advance({ for: "answer", upTo: queue.last }, queue);
}

/** A queue whose numbers are behind is another one, made anew: all that the one before held is gone. */
const hasLeft = (upTo: number, queue: Queue) => queue.first > upTo || queue.last < upTo;

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
