import { entryKey, type FlagEvent, type SnapshotEntry } from "@halyard/contracts";
import type { Transaction } from "@halyard/postgres";

/** A message to publish: a domain event for the event log, or the new value of a snapshot entry. */
export type OutboxMessage =
  | { stream: "events"; event: FlagEvent }
  | ({ stream: "snapshot" } & SnapshotEntry);

type OutboxRow = {
  stream: "events" | "snapshot";
  message_id: string;
  /** The subject of an event, or the key of an entry without the prefix of the bucket. */
  subject: string;
  payload: string;
  tombstone: boolean;
};

export function eventToPublish(event: FlagEvent): OutboxMessage {
  return { stream: "events", event };
}

export function entryToPublish(entry: SnapshotEntry): OutboxMessage {
  return { stream: "snapshot", ...entry };
}

function rowOf(message: OutboxMessage, newId: () => string): OutboxRow {
  if (message.stream === "events")
    return {
      stream: "events",
      message_id: message.event.id,
      subject: message.event.event,
      payload: JSON.stringify(message.event),
      tombstone: false,
    };
  return {
    stream: "snapshot",
    message_id: newId(),
    subject: entryKey(message.address),
    payload: JSON.stringify(message.value),
    tombstone: "deleted" in message.value,
  };
}

/** Appends messages to the outbox in this order. Returns the ids of the rows. */
export function appendMessages(
  tx: Transaction,
  messages: readonly OutboxMessage[],
  newId: () => string,
): Promise<number[]> {
  const rows = messages.map((message) => rowOf(message, newId));
  // Booleans are sent as text, because the client library mistakes an array of them for a single one.
  const inserted = tx<{ id: number }[]>`
    insert into outbox (stream, message_id, subject, payload, tombstone)
    select message.stream, message.message_id, message.subject, message.payload,
      message.tombstone::boolean
    from unnest(
      ${rows.map((row) => row.stream)}::text[],
      ${rows.map((row) => row.message_id)}::uuid[],
      ${rows.map((row) => row.subject)}::text[],
      ${rows.map((row) => row.payload)}::text[],
      ${rows.map((row) => String(row.tombstone))}::text[]
    ) with ordinality as message (stream, message_id, subject, payload, tombstone, position)
    order by message.position
    returning id`;
  return inserted.then((added) => added.map((row) => row.id));
}
