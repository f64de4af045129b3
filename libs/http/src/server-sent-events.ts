import type { ServerResponse } from "node:http";
import type { Writable } from "node:stream";

/**
 * Makes clients reconnect after about three seconds. The jitter of `random` spreads the reconnections of many clients.
 */
export function retryLine(random: () => number): string {
  const milliseconds = minRetryMs + Math.floor(random() * retryJitterMs);
  return `retry: ${milliseconds}\n\n`;
}

const minRetryMs = 3_000;
const retryJitterMs = 1_500;

/**
 * Returns a heartbeat. With an id, clients send that id as `Last-Event-ID` even if no other event follows. The interval
 * is the time until the next heartbeat, for clients that detect a silent stream by it.
 */
export function heartbeatEvent(
  nowMs: number,
  { id, intervalMs }: { id?: string; intervalMs?: number } = {},
): string {
  const idLine = id === undefined ? "" : `id: ${id}\n`;
  const data = {
    timestamp: Math.floor(nowMs / 1_000),
    ...(intervalMs === undefined ? {} : { interval: intervalMs / 1_000 }),
  };
  return `event: heartbeat\n${idLine}data: ${JSON.stringify(data)}\n\n`;
}

/** The heartbeat of streams whose clients do not know that event: a comment, which every client ignores. */
export const keepAlive = Buffer.from(": keep-alive\n\n");

/**
 * Maximum number of unsent bytes before a client is behind. It is not less than the high-water mark of sockets in
 * Node.js, so that the socket always emits `drain` when everything has been sent. One event may exceed it.
 */
export const maxUnsentBytes = 64 * 1024;

/** A client that is behind for longer is disconnected. The time of two heartbeats. */
const maxBehindMs = 30_000;

/**
 * A stream of events to one client. Data that the client does not read in time stays unsent in memory, up to a bound. A
 * client beyond the bound is behind: it receives no events. It can receive events again when it has read all unsent
 * data.
 */
export class EventStream {
  readonly response: ServerResponse;
  #behindSinceMs: number | undefined = undefined;

  constructor(response: ServerResponse) {
    this.response = response;
  }

  /** The stream to write events to. */
  get sink(): Writable {
    return this.response;
  }

  get isOpen(): boolean {
    return !this.response.writableEnded && !this.response.destroyed;
  }

  /** True if another event can be written. */
  get hasRoom(): boolean {
    if (this.#behindSinceMs !== undefined || !this.isOpen) return false;
    return this.response.writableLength <= maxUnsentBytes;
  }

  /** Returns `hasRoom`. A client without room falls behind; `onCaughtUp` is called when it has read everything. */
  hasRoomOrFallsBehind(nowMs: number, onCaughtUp: () => void): boolean {
    if (this.hasRoom) return true;
    if (this.#behindSinceMs !== undefined || !this.isOpen) return false;
    this.#behindSinceMs = nowMs;
    this.sink.once("drain", () => {
      this.#behindSinceMs = undefined;
      if (this.isOpen) onCaughtUp();
    });
    return false;
  }

  /** Returns whether the client has been behind for too long. */
  isFarBehind(nowMs: number): boolean {
    return this.#behindSinceMs !== undefined && nowMs - this.#behindSinceMs > maxBehindMs;
  }

  /** Ends the stream. If it has unsent data, the connection is closed immediately. */
  end(lastWords?: string): void {
    if (this.response.writableLength === 0) this.response.end(lastWords);
    else this.response.destroy();
  }
}
