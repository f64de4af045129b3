import {
  type EntryAddress,
  entryKey,
  type FlagEvent,
  type SnapshotEntry,
  type Tombstone,
} from "@halyard/contracts";

/** Something to publish: a domain event for the log, or the new value of an entry of the snapshot. */
export type OutboxMessage =
  | { stream: "events"; event: FlagEvent }
  | ({ stream: "snapshot" } & SnapshotEntry);

export type OutboxRow = {
  stream: "events" | "snapshot";
  message_id: string;
  subject: string;
  payload: string;
  tombstone: boolean;
};

export function eventMessage(event: FlagEvent): OutboxMessage {
  return { stream: "events", event };
}

export function entryMessage(address: EntryAddress, value: Tombstone): OutboxMessage {
  return { stream: "snapshot", address, value };
}

/** An entry as the functions that describe resources give it. */
export function entryOf(entry: SnapshotEntry): OutboxMessage {
  return { stream: "snapshot", ...entry };
}

export function rowOf(message: OutboxMessage, newId: () => string): OutboxRow {
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
