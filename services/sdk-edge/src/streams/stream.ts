import type { ServerResponse } from "node:http";
import type { Writable } from "node:stream";
import type { EvaluationContext } from "@halyard/evaluation";
import type { EnvironmentView } from "../environment/environment-view.ts";

/**
 * One open stream. There are tens of thousands of these, so it holds as little as it can, and no
 * timer. Those of SDKs are told values; those of OpenFeature clients are told to ask again, because
 * nobody says who listens to them.
 *
 * What a reader does not take in time stays unsent in memory, up to a bound. A reader beyond it has
 * fallen behind: it gets nothing more, and what changes meanwhile is not kept for it. When it has
 * taken what was on its way, one event puts it right; if that takes too long, the stream is closed.
 */
export type Stream = FlagsStream | RefetchStream;

type AnyStream = {
  readonly response: ServerResponse;
  readonly keyId: string;
  readonly environmentId: string;
  /** Which turn of the heartbeat is this stream's. */
  readonly slot: number;
  /** Since when it is behind. */
  behind: { sinceMs: number } | undefined;
  /** Why it ends. Until somebody here ends it, only the client can. */
  cause: CloseCause;
};

export type FlagsStream = AnyStream & {
  readonly kind: "flags";
  readonly organizationId: string;
  /** Who listens, for as long as the stream is open; `emptyContext` itself when nothing was said. */
  readonly context: EvaluationContext;
  /** Whether comparing with the context may take long. */
  readonly hasLargeContext: boolean;
  /** The view whose values it was told last. */
  heard: EnvironmentView;
  /** Its reader was behind, and has not been put right yet. */
  hasMissed: boolean;
};

export type RefetchStream = AnyStream & { readonly kind: "refetch" };

export type CloseCause = "client" | "key_ended" | "slow_reader" | "drain";

/**
 * Unsent bytes beyond which a reader is behind. It is not less than Node's own high-water mark for
 * sockets, so that a stream that is behind is always told when everything has been sent. One event
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
  return response.writableLength <= maxUnsentBytes;
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
