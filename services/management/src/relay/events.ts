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
import type { Publications } from "../outbox/publications.ts";
import type { Broker } from "./broker.ts";
import type { Lease } from "./lease.ts";
import { markUnsentAfter, recordedStream, recordFound, recordStream } from "./records.ts";

/**
 * Brings the outbox and the log of events to agree before anything is published. The log may hold
 * more than is recorded (the acknowledgement, or the process that got it, was lost) or less (it was
 * deleted, or the broker died before its disk had everything). What it holds more is recorded, what
 * it lost becomes unsent again; so every event is in the log once.
 *
 * Both can be a week's worth, so both go in pages, each in a transaction of its own. Dying in between
 * is harmless: until all is done, the record still says what it said before, and the next leader
 * begins again.
 *
 * Answers where the log stands; the next message goes behind its last sequence.
 */
export async function synchroniseEvents(
  sql: Sql,
  lease: Lease,
  broker: Broker,
  publications: Publications,
): Promise<StreamPosition> {
  const { manager, replicas, flagEventsMaxBytes } = broker;
  const position = await ensureFlagEvents(manager, replicas, flagEventsMaxBytes);
  const recorded = await recordedStream(sql, "events");
  const sameStream = recorded?.createdAt === position.createdAt;
  const known = sameStream ? Math.min(recorded.lastSequence, position.lastSequence) : 0;

  const lost = await markAllUnsent(lease, known);
  if (lost > 0) broker.logger.warn({ events: lost }, "the log of events lost some; refilling it");

  const { createdAt } = position;
  const record = (lastSequence: number, found: ReadonlyMap<string, number>) =>
    lease.recordAsLeader(async (tx) => {
      // Rows before the stream, as a lane does it: so neither waits for the other in a circle.
      const ids = await recordFound(tx, found);
      await recordStream(tx, "events", {
        createdAt,
        lastSequence,
        baseSequence: 0,
        signedSequence: 0,
      });
      return ids;
    });
  let lastSequence = known;
  let isLast = position.lastSequence <= known;
  while (!isLast) {
    const page = await readPage(broker, lastSequence + 1);
    isLast = page.isLast;
    lastSequence = page.lastSequence ?? lastSequence;
    publications.confirm(await record(lastSequence, page.ids));
  }
  // The log's last messages may have been removed; the sequence goes on behind them all the same.
  lastSequence = Math.max(lastSequence, position.lastSequence);
  await record(lastSequence, new Map());
  return { createdAt, lastSequence };
}

/** A page takes milliseconds to record, far from any time-out. */
const pageSize = 5_000;

async function markAllUnsent(lease: Lease, known: number): Promise<number> {
  let forgotten = 0;
  for (;;) {
    const rows = await lease.recordAsLeader((tx) => markUnsentAfter(tx, known, pageSize));
    forgotten += rows;
    if (rows < pageSize) return forgotten;
  }
}

const readPage = ({ connection, manager }: Broker, fromSequence: number) =>
  readMessageIds({ connection, manager, stream: flagEventsStream.name, fromSequence, pageSize });

/** The size of the log of events, and the number of events that webhook dispatchers have not processed. */
export type EventsSize = StreamSize & { unread: number };

/** An attempt to fill the log takes hours, so this is soon enough. */
const watchIntervalMs = 10_000;

/**
 * Measures the log of events, and applies its bound to a log that was created without it or with another
 * one. A failure does not end the round: publishing is more important than the bound.
 */
export async function watchEventsSize(
  options: { broker: Broker; onEventsSize: (size: EventsSize) => void },
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
        options.onEventsSize({ ...size, unread: backlog?.waiting ?? 0 });
        const before = alarm;
        alarm = eventsAlarm(size, maxBytes);
        if (alarm !== undefined && alarm !== before) logger.error({ ...size, maxBytes }, alarm);
      }
    } catch (err) {
      logger.warn({ err }, "the size of FLAG_EVENTS could not be measured or bounded");
    }
  } while (await pause(watchIntervalMs, signal));
}

/** From this share of its bound on, the log of events needs attention. */
const alarmShare = 0.8;

/**
 * Returns the problem that the size of the log causes. At its bound the log discards its oldest events,
 * also those that webhook dispatchers have not read, so the alarm comes before the bound.
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
