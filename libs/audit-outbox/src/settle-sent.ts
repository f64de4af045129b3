import { auditStream } from "@halyard/contracts";
import { findBacklog, streamPosition } from "@halyard/jetstream";
import type { JetStreamManager } from "@nats-io/jetstream";
import type { SentRow } from "./outbox-rows.ts";

/** The part of the stream that management has processed. */
type Handled = {
  streamCreatedAt: string;
  lastSequence: number;
  /** Sequence up to which all messages are acknowledged. */
  upTo: number;
};

/** Returns the processed part of the stream; undefined while the stream does not exist. */
export async function readHandled(manager: JetStreamManager): Promise<Handled | undefined> {
  const stream = auditStream.name;
  // The end is read first, so that a message that is published later does not count as processed.
  const position = await streamPosition(manager, stream);
  if (position === undefined) return undefined;
  const { consumer } = auditStream.recorded;
  const backlog = await findBacklog(manager, { stream, consumer });
  const { createdAt: streamCreatedAt, lastSequence } = position;
  if (backlog === undefined) return { streamCreatedAt, lastSequence, upTo: 0 };
  return {
    streamCreatedAt,
    lastSequence,
    upTo: backlog.waiting === 0 ? lastSequence : backlog.ackFloor,
  };
}

/**
 * Decides which messages management has processed and which the broker has lost. A message is lost if its stream was
 * created again, or ends before it after a crash. The rows must be read before the stream.
 */
export function decideSent(
  rows: readonly SentRow[],
  handled: Handled | undefined,
): { handled: SentRow[]; lost: SentRow[] } {
  if (handled === undefined) return { handled: [], lost: [] };
  const isLost = ({ streamCreatedAt, sequence }: SentRow) =>
    streamCreatedAt !== handled.streamCreatedAt || sequence > handled.lastSequence;
  return {
    handled: rows.filter((row) => !isLost(row) && row.sequence <= handled.upTo),
    lost: rows.filter(isLost),
  };
}
