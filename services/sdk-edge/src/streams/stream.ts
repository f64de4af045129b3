import type { ServerResponse } from "node:http";
import type { Writable } from "node:stream";

/**
 * One open stream. There are tens of thousands of them, so each holds as little as possible, and no timer.
 *
 * Data that a client does not read in time stays unsent in memory, up to a bound. A client beyond the bound is behind:
 * it receives no events. When all unsent data has been read, one event brings the client up to date. A stream whose
 * client stays behind for too long is closed.
 */
export type Stream = {
  /**
   * "flags": a stream of values for SDKs; "ruleset": a stream of rules for SDKs; "refetch": a stream of refetches for
   * OpenFeature clients.
   */
  readonly kind: "flags" | "ruleset" | "refetch";
  readonly response: ServerResponse;
  readonly keyId: string;
  readonly environmentId: string;
  /** Set while the client is behind. */
  behind: { sinceMs: number } | undefined;
  /** The reason for the end of the stream. "client" unless the edge ends it. */
  closeCause: CloseCause;
};

export type CloseCause = "client" | "key_ended" | "slow_reader" | "drain";

/**
 * Maximum number of unsent bytes before a client is behind. It is not less than the high-water mark of sockets in
 * Node.js, so that the socket always emits `drain` when everything has been sent. One event may exceed it. So a stream
 * costs at most this and one event, whose bytes it shares with others.
 */
export const maxUnsentBytes = 64 * 1024;

/** Time after which a client that is behind is disconnected: two heartbeats. */
const maxBehindMs = 30_000;

/**
 * Returns the stream to write events to: the connection itself, without the cost of Node's HTTP layer. Until an earlier
 * response on the same connection has finished, it is the response.
 */
export function sinkOf({ response }: Stream): Writable {
  return response.socket ?? response;
}

/** Returns whether another event can be written to the stream. */
export function hasRoom({ behind, response }: Stream): boolean {
  if (behind !== undefined || response.writableEnded) return false;
  // Events are written to the socket. This length includes its unsent bytes.
  return response.writableLength <= maxUnsentBytes;
}

/** Returns `hasRoom`. A client without room falls behind; `onCaughtUp` is called when it has read everything. */
export function hasRoomOrFallsBehind(
  stream: Stream,
  { nowMs, onCaughtUp }: { nowMs: number; onCaughtUp: () => void },
): boolean {
  if (hasRoom(stream)) return true;
  if (stream.behind !== undefined || stream.response.writableEnded) return false;
  stream.behind = { sinceMs: nowMs };
  sinkOf(stream).once("drain", () => {
    stream.behind = undefined;
    if (!stream.response.writableEnded) onCaughtUp();
  });
  return false;
}

export function isFarBehind({ behind }: Stream, nowMs: number): boolean {
  return behind !== undefined && nowMs - behind.sinceMs > maxBehindMs;
}

/** Ends a stream. If the stream has unsent data, the connection is closed immediately. */
export function endStream(stream: Stream, closeCause: CloseCause, lastWords?: string): void {
  if (stream.response.writableEnded || stream.response.destroyed) return;
  stream.closeCause = closeCause;
  if (stream.response.writableLength === 0) stream.response.end(lastWords);
  else stream.response.destroy();
}

/**
 * Number of groups of streams. Each group has its own time for heartbeats, because writing to all streams takes long.
 */
export const heartbeatGroups = 60;

/** All open streams of an edge. */
export type OpenStreams = {
  /** Adds a stream until its response closes; `onClose` is called then. */
  add(stream: Stream, onClose: () => void): void;
  ofHeartbeatGroup(group: number): ReadonlySet<Stream>;
  /** Visits all streams. A generator would allocate an object for each stream. */
  each(visit: (stream: Stream) => void): void;
  readonly size: number;
};

export function createOpenStreams({ closed }: Pick<StreamCounts, "closed">): OpenStreams {
  const heartbeatSets = Array.from({ length: heartbeatGroups }, () => new Set<Stream>());
  let added = 0;
  let size = 0;
  return {
    add(stream, onClose) {
      const group = heartbeatSets[added % heartbeatGroups];
      added += 1;
      group?.add(stream);
      size += 1;
      stream.response.once("close", () => {
        group?.delete(stream);
        size -= 1;
        closed[stream.closeCause] += 1;
        onClose();
      });
    },
    ofHeartbeatGroup: (group) => heartbeatSets[group] ?? noStreams,
    each(visit) {
      for (const streams of heartbeatSets) for (const stream of streams) visit(stream);
    },
    get size() {
      return size;
    },
  };
}

/** The open streams of one kind, by environment. */
export function createStreamGroups<S extends Stream>() {
  const groups = new Map<string, Set<S>>();
  return {
    add(stream: S): void {
      const group = groups.get(stream.environmentId);
      if (group === undefined) groups.set(stream.environmentId, new Set([stream]));
      else group.add(stream);
    },
    remove(stream: S): void {
      const group = groups.get(stream.environmentId);
      group?.delete(stream);
      if (group?.size === 0) groups.delete(stream.environmentId);
    },
    of: (environmentId: string): ReadonlySet<S> => groups.get(environmentId) ?? noStreams,
  };
}

const noStreams: ReadonlySet<never> = new Set();

/** Counters of an edge's streams. */
export type StreamCounts = {
  flags: number;
  ruleset: number;
  refetch: number;
  heartbeat: number;
  closed: Record<CloseCause, number>;
};

export function createStreamCounts(): StreamCounts {
  return {
    ...{ flags: 0, ruleset: 0, refetch: 0, heartbeat: 0 },
    closed: { client: 0, key_ended: 0, slow_reader: 0, drain: 0 },
  };
}
