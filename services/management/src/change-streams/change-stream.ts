import type { ServerResponse } from "node:http";
import { auditEntryResource } from "../audit/audit-log.ts";
import type { Feed, SequencedEntry } from "./feed-store.ts";

/** One open stream of changes. */
export type ChangeStream = {
  readonly response: ServerResponse;
  readonly feed: Feed;
  /** The id of the API key, or "operator". */
  readonly caller: string;
  expiresAtMs: number | undefined;
  /** Sequence after which the stream continues. Undefined until the first read. */
  position: number | undefined;
  /** True when the stream has sent all changes that were missed before it was opened. */
  isCaughtUp: boolean;
  /** Monotonic time when the client stopped reading. Undefined while it reads. */
  behindSinceMs: number | undefined;
  /** Monotonic time of the last heartbeat. */
  heartbeatMs: number;
};

export const operatorCaller = "operator";

/** A stream with more unsent bytes gets no further entries. At least the high-water mark of sockets. */
const maxUnsentBytes = 64 * 1024;

/** Time after which a client that reads nothing is disconnected: two heartbeats. */
const maxBehindMs = 30_000;

export function isOpen({ response }: ChangeStream): boolean {
  return !response.writableEnded && !response.destroyed;
}

export function hasRoom(stream: ChangeStream): boolean {
  return isOpen(stream) && stream.response.writableLength <= maxUnsentBytes;
}

export function isFarBehind({ behindSinceMs }: ChangeStream, nowMs: number): boolean {
  return behindSinceMs !== undefined && nowMs - behindSinceMs > maxBehindMs;
}

/** Ends a stream. With unsent data, the connection is closed immediately. */
export function endStream({ response }: ChangeStream, lastWords?: string): void {
  if (response.writableLength === 0) response.end(lastWords);
  else response.destroy();
}

/**
 * Formats an entry for a feed. The entry of another environment, or of none, contains what a key with `environment_only`
 * must not see, so such a key learns only which flag to read again. JSON contains no line breaks, so the data is one line.
 */
export function eventOf(entry: SequencedEntry, { environmentId }: Feed): string {
  const isListed = environmentId === undefined || environmentId === entry.environmentId;
  return isListed
    ? event("change", entry, auditEntryResource(entry))
    : event("flag_changed", entry, { flag_id: entry.flagId, flag_key: entry.flagKey });
}

const event = (name: string, { id }: SequencedEntry, data: object): string =>
  `event: ${name}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`;

/** Why a stream cannot send all changes that were missed. */
export type ResetReason = "unknown_id" | "too_many_changes" | "database_restored";

export function resetEvent(reason: ResetReason): string {
  return `event: reset\ndata: {"reason":"${reason}"}\n\n`;
}
