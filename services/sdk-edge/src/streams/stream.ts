import type { ServerResponse } from "node:http";
import type { Writable } from "node:stream";

/**
 * One open stream. There are tens of thousands of these, so it holds as little as it can, and no timer.
 *
 * What a reader does not take in time stays unsent in memory, up to a bound. A reader beyond the bound is
 * behind: it gets no events. When it has taken everything that was unsent, one event brings it up to date.
 * A reader that stays behind for too long is closed.
 */
export type Stream = {
  /** Streams of values for SDKs; for OpenFeature clients, streams of notices to evaluate again. */
  readonly kind: "flags" | "refetch";
  readonly response: ServerResponse;
  readonly keyId: string;
  readonly environmentId: string;
  /** Set while the reader is behind. */
  behind: { sinceMs: number } | undefined;
  /** Why it ends. Until the edge ends it, only the client can. */
  cause: CloseCause;
};

export type CloseCause = "client" | "key_ended" | "slow_reader" | "drain";

/**
 * Unsent bytes beyond which a reader is behind. It is not less than Node's own high-water mark for
 * sockets, so that a stream that is behind always gets a `drain` when everything has been sent. One event
 * may exceed it: a stream costs at most this and one event, whose bytes it shares with others.
 */
export const maxUnsentBytes = 64 * 1024;

/** A reader that has not caught up after two heartbeats is as good as gone. */
const maxBehindMs = 30_000;

/**
 * Where events are written: the connection itself, without what Node's HTTP layer does for each piece
 * of an answer. Until an earlier answer on the same connection is done, there is only the response.
 */
export function sinkOf({ response }: Stream): Writable {
  return response.socket ?? response;
}

/** Whether the stream can be given another event. */
export function hasRoom({ behind, response }: Stream): boolean {
  if (behind !== undefined || response.writableEnded) return false;
  // Events are written to the socket. This length includes its unsent bytes.
  return response.writableLength <= maxUnsentBytes;
}

/** Returns `hasRoom`. A reader without room falls behind; `onCaughtUp` is called when it has taken everything. */
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

/** Ends a stream. A reader that still has to take something is not waited for. */
export function endStream(stream: Stream, cause: CloseCause, lastWords?: string): void {
  if (stream.response.writableEnded || stream.response.destroyed) return;
  stream.cause = cause;
  if (stream.response.writableLength === 0) stream.response.end(lastWords);
  else stream.response.destroy();
}

/** Number of turns of a heartbeat. Each turn writes to a part of the streams, because writing to all of them takes long. */
export const heartbeatGroups = 60;

/** All open streams of an edge. */
export type OpenStreams = {
  /** Adds a stream until its response closes; `onClose` is called then. */
  add(stream: Stream, onClose: () => void): void;
  ofHeartbeatGroup(group: number): ReadonlySet<Stream>;
  /** A loop instead of a generator, which would leave an object behind for each stream. */
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
        closed[stream.cause] += 1;
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

/** Figures of an edge's streams. */
export type StreamCounts = {
  flags: number;
  refetch: number;
  heartbeat: number;
  closed: Record<CloseCause, number>;
};

export function createStreamCounts(): StreamCounts {
  return {
    ...{ flags: 0, refetch: 0, heartbeat: 0 },
    closed: { client: 0, key_ended: 0, slow_reader: 0, drain: 0 },
  };
}
