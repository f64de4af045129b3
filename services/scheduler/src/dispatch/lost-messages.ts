import { scheduleStream } from "@halyard/contracts";
import { type Backlog, findBacklog, isBrokerUnavailable } from "@halyard/jetstream";
import { isOutage, type Sql } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import { JetStreamApiCodes, JetStreamApiError, type JetStreamManager } from "@nats-io/jetstream";
import type { Logger } from "pino";
import { listSent } from "./dispatch-store.ts";
import type { SendDue } from "./send-due.ts";

/**
 * Finds and resends lost changes: changes that are marked as sent although no message about them exists. The
 * process crashed before it sent them, or the broker lost the message or the answer. `findLostChanges` detects
 * them without a clock. A change is resent with the same id: management detects a change that it has already
 * applied, and publishes its answer again.
 */
const defaultIntervalMs = 2_000;
const pageSize = 1_000;

export function watchForLostMessages(options: {
  sql: Sql;
  canSend: () => boolean;
  manager: JetStreamManager;
  send: SendDue;
  intervalMs?: number | undefined;
  logger: Logger;
}): { stop(): Promise<void> } {
  const { sql, intervalMs = defaultIntervalMs, logger } = options;
  let watched: Watched = new Map();

  async function check(): Promise<void> {
    if (!options.canSend()) return;
    // The queue is read first: a change that is settled in between is in neither result.
    const queue = await readQueue(options.manager);
    const found = findLostChanges(await listSent(sql, pageSize), queue, watched);
    const { lost } = found;
    watched = found.watched;
    if (lost.length === 0) return;
    logger.warn({ changes: lost.length, stream: scheduleStream.name }, "resending lost changes");
    await options.send(lost, { again: true });
  }

  return startInterval(check, {
    intervalMs,
    isExpected: (error) => isOutage(error) || isBrokerUnavailable(error),
    onFailure: (err) => logger.warn({ err }, "cannot check for lost messages; retrying"),
  });
}

/**
 * The queue between scheduler and management. It holds each message until the message's effect is recorded, and
 * numbers the messages in sequence. A sent change without an outcome is therefore lost when two sets of messages
 * have left the queue. The first set is read one check after the change was found; it contains the change's
 * message if that was ever sent. The second set is read after the first has left; it contains the answer.
 * An empty queue satisfies both conditions.
 */
export type Queue = {
  /** Sequence of the first message in the queue. One more than `last` if the queue is empty. */
  first: number;
  /** Sequence of the last message that was added to the queue, even if it has left. */
  last: number;
};

/** The progress of the check for each sent change, by change id. */
export type Watched = ReadonlyMap<string, "seen" | Waiting>;
type Waiting = { for: "message" | "answer"; upTo: number };

/**
 * Returns the lost changes and the state for the next check. The caller reads the queue before the changes, so
 * that a change that is settled in between is in neither.
 */
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
    // A lost change is sent again, and then its check restarts.
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

/** A lower last sequence means that the queue was recreated: all messages of the previous one are gone. */
const hasLeft = (upTo: number, queue: Queue) => queue.first > upTo || queue.last < upTo;

/**
 * Reads the range of messages in the queue between scheduler and management, in both directions. After a crash
 * the stream can contain acknowledged messages, so the consumers determine what is in the queue.
 *
 * The order of the requests matters because they are not atomic. The stream is read before the consumers: if
 * they have no messages left, everything up to that end has left the queue. The stream is read again after the
 * consumers. Management publishes an answer before it acknowledges, so the second end includes the answers to
 * all messages that the first consumer has acknowledged.
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

/** Returns a sequence below which no message waits for this consumer. */
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
