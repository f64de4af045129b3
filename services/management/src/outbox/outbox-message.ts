import type { FlagEvent, SnapshotEntry } from "@halyard/contracts";

/** A message to publish: a domain event for the event log, or the new value of a snapshot entry. */
export type OutboxMessage =
  | { stream: "events"; event: FlagEvent }
  | ({ stream: "snapshot" } & SnapshotEntry);

export function eventToPublish(event: FlagEvent): OutboxMessage {
  return { stream: "events", event };
}

export function entryToPublish(entry: SnapshotEntry): OutboxMessage {
  return { stream: "snapshot", ...entry };
}
