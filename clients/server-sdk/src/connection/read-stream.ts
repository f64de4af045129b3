import { createParser, type EventSourceMessage } from "eventsource-parser";
import type { Platform } from "../platform.ts";
import { type Rejection, rejectionOf } from "./rejection.ts";

export type StreamEnd =
  | Rejection
  /** The service or the network closed an open stream. */
  | { kind: "closed" }
  /** There is no connection. */
  | { kind: "unreachable"; cause: unknown }
  /** Nothing arrived in time after the request: a proxy holds the events back, or the network drops them. */
  | { kind: "silent" }
  /** An open stream sent nothing, not even a heartbeat. */
  | { kind: "stalled" }
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
  /** Receives the delay in a `retry:` line. */
  onRetry: (delayMs: number) => void;
};

/** Maximum silence before the first event that confirms the flags. */
const silentAfterMs = 10_000;
/** Maximum silence of an open stream: three heartbeats. */
const stalledAfterMs = 45_000;
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
  { attempt, receive, onRetry }: StreamRequest,
  watchdog: Watchdog,
): Promise<void> {
  const end = (problem: string) => attempt.abort({ kind: "invalid_data", problem });
  const parser = createParser({
    maxBufferSize: maxEventLength,
    onRetry,
    onError: () => end("a line is not part of an event"),
    onEvent(event) {
      if (attempt.signal.aborted) return;
      const receipt = receive(event);
      if (receipt === "confirmed") watchdog.allowPauses();
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
  /** The stream is confirmed. From now on, it may pause for longer. */
  allowPauses(): void;
  stop(): void;
};

function createWatchdog(clock: Platform["clock"], end: (reason: StreamEnd) => void): Watchdog {
  let heardAtMs = clock.monotonicMs();
  let isConfirmed = false;
  let cancel = clock.after(silentAfterMs, check);

  // One timer for many chunks: it looks at the time of the last one, and waits for the rest.
  function check(): void {
    const limitMs = isConfirmed ? stalledAfterMs : silentAfterMs;
    const leftMs = heardAtMs + limitMs - clock.monotonicMs();
    if (leftMs > 0) cancel = clock.after(leftMs, check);
    else end({ kind: isConfirmed ? "stalled" : "silent" });
  }

  return {
    heard() {
      heardAtMs = clock.monotonicMs();
    },
    allowPauses() {
      isConfirmed = true;
    },
    stop: () => cancel(),
  };
}
