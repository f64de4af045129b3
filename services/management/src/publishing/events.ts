import { flagEventsStream } from "@halyard/contracts";
import {
  boundStream,
  ensureFlagEvents,
  findBacklog,
  readMessageIds,
  type StreamPosition,
  type StreamSize,
} from "@halyard/jetstream";
import type { Sql } from "@halyard/postgres";
import { pause } from "@halyard/timing";
import type { Broker } from "./broker.ts";
import type { Lease } from "./lease.ts";
import { markUnsentAfter, recordedStream, recordFound, recordStream } from "./records.ts";
import type { UnreadEvents } from "./unread-events.ts";

/**
 * Synchronizes the outbox with the event log before anything is published. The log may contain unrecorded events,
 * because the acknowledgement or the process that received it was lost. It may lack recorded events, because it was
 * deleted or the broker died before its disk had them. Unrecorded events are recorded, and missing events become unsent
 * again. So the log contains every event exactly once.
 *
 * Both can be a week of events, so they are processed in pages, each in a separate transaction. A crash in between is
 * harmless: the recorded position advances only together with its page, so the next leader continues there.
 *
 * Returns the position of the log. The next message follows the last sequence.
 */
export async function synchronizeEvents(
  sql: Sql,
  lease: Lease,
  broker: Broker,
): Promise<StreamPosition> {
  const { manager, replicas, flagEventsMaxBytes } = broker;
  const position = await ensureFlagEvents(manager, replicas, flagEventsMaxBytes);
  const recorded = await recordedStream(sql, "events");
  const sameStream = recorded?.createdAt === position.createdAt;
  const known = sameStream ? Math.min(recorded.lastSequence, position.lastSequence) : 0;

  const lost = await markAllUnsent(lease, known);
  if (lost > 0) broker.logger.warn({ events: lost }, "the event log lost events; refilling it");

  const { createdAt } = position;
  const record = (lastSequence: number, found: ReadonlyMap<string, number>) =>
    lease.recordAsLeader(async (tx) => {
      // Updates rows before the stream, in the same order as a publisher. Another order could deadlock.
      await recordFound(tx, found);
      await recordStream(tx, "events", { createdAt, lastSequence, baseSequence: 0 });
    });
  let lastSequence = known;
  let isLast = position.lastSequence <= known;
  while (!isLast) {
    const page = await readPage(broker, lastSequence + 1);
    isLast = page.isLast;
    lastSequence = page.lastSequence ?? lastSequence;
    await record(lastSequence, page.ids);
  }
  // The newest messages of the log may have been removed. The sequence still continues after them.
  lastSequence = Math.max(lastSequence, position.lastSequence);
  await record(lastSequence, new Map());
  return { createdAt, lastSequence };
}

/** Number of events per page. A page is recorded in milliseconds, far below any time-out. */
const pageSize = 5_000;

async function markAllUnsent(lease: Lease, known: number): Promise<number> {
  let marked = 0;
  for (;;) {
    const rows = await lease.recordAsLeader((tx) => markUnsentAfter(tx, known, pageSize));
    marked += rows;
    if (rows < pageSize) return marked;
  }
}

const readPage = ({ connection, manager }: Broker, fromSequence: number) =>
  readMessageIds({ connection, manager, stream: flagEventsStream.name, fromSequence, pageSize });

/** Size of the event log, and the number of events that webhook dispatchers have not processed. */
export type EventsSize = StreamSize & {
  unread: number;
  /** Number of organizations whose events wait in the outbox. */
  waitingOrganizations: number;
};

/** Interval of measurements, and the longest wait of events after dispatchers have processed the earlier ones. */
const watchIntervalMs = 1_000;

/**
 * Measures the event log and what is unread of it, and applies the configured size limit to a log that has another one.
 * A failure does not end the term, because publishing is more important than the limit.
 */
export async function watchEventsSize(
  options: { broker: Broker; unread: UnreadEvents; onEventsSize: (size: EventsSize) => void },
  signal: AbortSignal,
): Promise<void> {
  const { manager, logger, flagEventsMaxBytes } = options.broker;
  const { name, webhookConsumer, defaultMaxBytes } = flagEventsStream;
  const maxBytes = flagEventsMaxBytes ?? defaultMaxBytes;
  let alarm: string | undefined;
  do {
    try {
      const size = await boundStream(manager, name, maxBytes);
      if (size !== undefined) {
        const backlog = await findBacklog(manager, { stream: name, consumer: webhookConsumer });
        // Without a consumer, no dispatcher needs the events.
        options.unread.processed(backlog?.ackFloor ?? Number.POSITIVE_INFINITY);
        const waitingOrganizations = options.unread.waiting().length;
        options.onEventsSize({ ...size, unread: backlog?.waiting ?? 0, waitingOrganizations });
        const before = alarm;
        alarm = eventsAlarm(size, maxBytes);
        if (alarm !== undefined && alarm !== before) logger.error({ ...size, maxBytes }, alarm);
      }
    } catch (err) {
      logger.warn({ err }, "the size of FLAG_EVENTS could not be measured or bounded");
    }
  } while (await pause(watchIntervalMs, signal));
}

/** Share of the size limit at which an error is logged. */
const alarmShare = 0.8;

/**
 * Returns the error to log about the size of the event log, if any. At its limit the log discards its oldest events,
 * including those that webhook dispatchers have not read. So the error is logged before the limit is reached.
 */
export function eventsAlarm(size: StreamSize, configuredMaxBytes: number): string | undefined {
  const { bytes, maxBytes } = size;
  if (maxBytes !== configuredMaxBytes)
    return bytes > configuredMaxBytes
      ? "FLAG_EVENTS is larger than FLAG_EVENTS_MAX_BYTES; the bound is applied when enough events have expired"
      : "FLAG_EVENTS_MAX_BYTES is not applied";
  if (bytes < alarmShare * maxBytes) return undefined;
  return "FLAG_EVENTS is almost full and will discard its oldest events; raise FLAG_EVENTS_MAX_BYTES";
}
