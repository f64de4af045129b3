import type { AudienceEvent, FlagEvent, SnapshotEntry, UserErased } from "@halyard/contracts";

/** An event for the event log. */
type LoggedEvent = FlagEvent | AudienceEvent | UserErased;

/** A message to publish: an event for the event log, or the new value of a snapshot entry. */
export type OutboxMessage =
  | { stream: "events"; event: LoggedEvent }
  | ({ stream: "snapshot" } & SnapshotEntry);

export function eventToPublish(event: LoggedEvent): OutboxMessage {
  return { stream: "events", event };
}

export function entryToPublish(entry: SnapshotEntry): OutboxMessage {
  return { stream: "snapshot", ...entry };
}
