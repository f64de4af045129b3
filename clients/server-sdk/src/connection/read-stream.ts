import { createParser, type EventSourceMessage } from "eventsource-parser";
import type { Platform } from "../platform.ts";
import { type Rejection, rejectionOf } from "./rejection.ts";

export type StreamEnd =
  | Rejection
  /** The service or the network closed an open stream. */
  | { kind: "closed" }
  /** There is no connection. */
  | { kind: "unreachable"; cause: unknown }
  /** No event that confirms the flags arrived in time after the request. */
  | { kind: "silent"; hasResponse: boolean }
  /** An open stream sent nothing for this time, not even a heartbeat. */
  | { kind: "stalled"; silenceMs: number }
  | { kind: "not_a_stream" }
  | { kind: "invalid_data"; problem: string }
  /** The client ended the stream: it was closed, or the process woke from suspension. */
  | { kind: "ended_by_client" };

/** Result of an event. `confirmed`: the flags in memory are now those of the service. */
export type Receipt = "confirmed" | "ignored" | { problem: string };

type StreamRequest = {
  url: string;
  headers: Record<string, string>;
  platform: Platform;
  /** Aborted with a `StreamEnd` to end the stream. */
  attempt: AbortController;
  receive: (event: EventSourceMessage) => Receipt;
};

/** Maximum silence before the flags are confirmed, and of a stream with heartbeats every 3 s. */
const minSilenceMs = 8_000;
/** Maximum silence of a stream whose heartbeats name no interval. Earlier edges sent them every 15 s. */
const maxSilenceMs = 45_000;
/** Maximum length of an event in characters, about a hundred times that of 10,000 flags. */
const maxEventLength = 500_000_000;

/** Reads a stream of server-sent events until it ends. Never rejects. */
export async function readStream(request: StreamRequest): Promise<StreamEnd> {
  const { url, headers, platform, attempt } = request;
  const { signal } = attempt;
  const end = (reason: StreamEnd) => attempt.abort(reason);
  const watchdog = createWatchdog(platform.clock, end);
  let isOpen = false;
  try {
    // A redirect to another host would lose the key and then look like an invalid key.
    const response = await platform.fetch(url, { headers, signal, redirect: "manual" });
    if (response.status !== 200) end(rejectionOf(response, platform.clock.wallMs()));
    else if (!isEventStream(response) || response.body === null) end({ kind: "not_a_stream" });
    else {
      isOpen = true;
      watchdog.opened();
      await readEvents(response.body, request, watchdog);
      end({ kind: "closed" });
    }
  } catch (cause) {
    end(isOpen ? { kind: "closed" } : { kind: "unreachable", cause });
  } finally {
    watchdog.stop();
  }
  // The first reason counts; the signal keeps it.
  return signal.reason;
}

async function readEvents(
  body: ReadableStream<Uint8Array>,
  { attempt, receive }: StreamRequest,
  watchdog: Watchdog,
): Promise<void> {
  const end = (problem: string) => attempt.abort({ kind: "invalid_data", problem });
  const parser = createParser({
    maxBufferSize: maxEventLength,
    onError: () => end("a line is not part of an event"),
    onEvent(event) {
      if (attempt.signal.aborted) return;
      const receipt = receive(event);
      if (receipt === "confirmed") watchdog.confirmed(event);
      else if (receipt !== "ignored") end(receipt.problem);
    },
  });
  const decoder = new TextDecoder("utf-8", { fatal: true });
  for await (const bytes of body) {
    watchdog.heard();
    parser.feed(decode(bytes));
  }

  function decode(bytes: Uint8Array): string {
    try {
      return decoder.decode(bytes, { stream: true });
    } catch {
      end("it is not UTF-8");
      return "";
    }
  }
}

function isEventStream(response: Response): boolean {
  return /^text\/event-stream\b/i.test(response.headers.get("content-type") ?? "");
}

type Watchdog = {
  heard(): void;
  /** The head of the response arrived. */
  opened(): void;
  /** An event confirmed the flags. A heartbeat names the time until the next one. */
  confirmed(event: EventSourceMessage): void;
  stop(): void;
};

function createWatchdog(clock: Platform["clock"], end: (reason: StreamEnd) => void): Watchdog {
  let heardAtMs = clock.monotonicMs();
  let hasResponse = false;
  let isConfirmed = false;
  let silenceMs = minSilenceMs;
  let cancel = clock.after(silenceMs, check);

  // One timer for many chunks: it looks at the time of the last one, and waits for the rest.
  function check(): void {
    const leftMs = heardAtMs + silenceMs - clock.monotonicMs();
    if (leftMs > 0) cancel = clock.after(leftMs, check);
    else end(isConfirmed ? { kind: "stalled", silenceMs } : { kind: "silent", hasResponse });
  }

  return {
    heard() {
      heardAtMs = clock.monotonicMs();
    },
    opened() {
      hasResponse = true;
    },
    confirmed({ event, data }) {
      isConfirmed = true;
      if (event === "heartbeat") silenceMs = maxSilenceOf(data);
    },
    stop: () => cancel(),
  };
}

/** Returns the maximum silence after a heartbeat: two intervals and a margin. */
function maxSilenceOf(heartbeat: string): number {
  const { interval } = parseHeartbeat(heartbeat);
  if (typeof interval !== "number") return maxSilenceMs;
  return Math.min(Math.max(2_000 * interval + 2_000, minSilenceMs), maxSilenceMs);
}

function parseHeartbeat(data: string): { interval?: unknown } {
  try {
    return JSON.parse(data) ?? {};
  } catch {
    return {};
  }
}
