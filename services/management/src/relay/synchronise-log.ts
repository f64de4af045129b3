import { flagEventsStream } from "@halyard/contracts";
import { ensureFlagEvents, readMessageIds, type StreamPosition } from "@halyard/jetstream";
import type { Sql } from "@halyard/postgres";
import type { Publications } from "../outbox/publications.ts";
import type { Broker } from "./broker.ts";
import type { Lease } from "./lease.ts";
import { forgetEventsAfter, recordedStream, recordFound, recordStream } from "./outbox-rows.ts";

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
export async function synchroniseLog(
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

  const lost = await forgetAll(lease, known);
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

async function forgetAll(lease: Lease, known: number): Promise<number> {
  let forgotten = 0;
  for (;;) {
    const rows = await lease.recordAsLeader((tx) => forgetEventsAfter(tx, known, pageSize));
    forgotten += rows;
    if (rows < pageSize) return forgotten;
  }
}

const readPage = ({ connection, manager }: Broker, fromSequence: number) =>
  readMessageIds({ connection, manager, stream: flagEventsStream.name, fromSequence, pageSize });
