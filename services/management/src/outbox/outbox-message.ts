import type { DomainEvent, SnapshotEntry, UserErased } from "@halyard/contracts";
import type { PeopleChange } from "./people-entries.ts";

/** An event for the event log. */
type LoggedEvent = DomainEvent | UserErased;

/** A message of the outbox: an event for the event log, or the new value of a snapshot entry. */
export type OutboxMessage =
  | { stream: "events"; event: LoggedEvent }
  | ({ stream: "snapshot" } & SnapshotEntry);

/** A message to publish. Entries about people are stored in another table (people-entries.ts). */
export type Message = OutboxMessage | ({ stream: "people" } & PeopleChange);

export const isOfOutbox = (message: Message): message is OutboxMessage =>
  message.stream !== "people";

export function eventToPublish(event: LoggedEvent): OutboxMessage {
  return { stream: "events", event };
}

export function entryToPublish(entry: SnapshotEntry): OutboxMessage {
  return { stream: "snapshot", ...entry };
}

export function personToPublish(change: PeopleChange): Message {
  return { stream: "people", ...change };
}
