import type { Clock } from "./clock.ts";
import { asciiJson } from "./context.ts";
import { createEventReader } from "./event-reader.ts";
import type { Outcome, Route } from "./next-step.ts";
import { parseMessage, type ValuesMessage } from "./typed-values.ts";

/** Requests to the edge for one user. They neither throw nor reject. */
export type Edge = {
  /** Requests all values once. A 304 of a proxy to a client without values is a failure. */
  poll(request: EdgeRequest): Promise<Outcome>;
  /** Reads the stream of values until it ends. */
  stream(request: EdgeRequest): Promise<Outcome>;
  /** False if the context is too large for a header. */
  readonly streams: boolean;
};

type EdgeRequest = {
  signal: AbortSignal;
  /** The tag of the values that the client has. */
  tag: string | undefined;
  /** Receives values; undefined: the values of the tag are current. */
  onValues: (received: Received | undefined) => void;
};

export type Received = ValuesMessage & {
  /** True: these are all values. False: the changed ones. */
  isFull: boolean;
  tag: string | undefined;
};

/** Many proxies reject headers of more than 8 KiB. */
const maxContextHeaderLength = 8_000;

const pollTimeoutMs = 10_000;
/** Time after which a stream without an event counts as held back by a proxy. */
const firstEventTimeoutMs = 5_000;
/** Time after which a silent stream counts as lost: three heartbeats. */
const silenceTimeoutMs = 45_000;

/** Wait before a reconnection, unless the edge sends another one. */
const defaultRetryMs = 3_000;

export function createEdge(options: {
  baseUrl: string;
  clientKey: string;
  contextJson: string;
  fetch: typeof fetch;
  clock: Clock;
}): Edge {
  const { contextJson, clock } = options;
  const authorization = `Bearer ${options.clientKey}`;
  const contextHeader = asciiJson(contextJson);

  /** Sends a request. It is aborted by the signal, and at the deadline unless `extend` moves that. */
  async function attempt(
    { by, init, signal }: { by: Route; init: RequestInit; signal: AbortSignal },
    read: (response: Response, extend: (ms: number) => void) => Promise<Outcome>,
  ): Promise<Outcome> {
    const abort = new AbortController();
    const stop = () => abort.abort();
    let cancel = () => {};
    const extend = (ms: number) => {
      cancel();
      cancel = clock.after(ms, stop);
    };
    signal.addEventListener("abort", stop, { signal: abort.signal });
    try {
      extend(by === "poll" ? pollTimeoutMs : firstEventTimeoutMs);
      const url = `${options.baseUrl}/api/v1/sdk/${by === "poll" ? "values" : "stream?values=true"}`;
      const response = await options.fetch(url, { ...init, signal: abort.signal });
      if (response.ok || response.status === 304) return await read(response, extend);
      const retryAfterMs = Number(response.headers.get("retry-after")) * 1_000 || 0;
      return failed(by, response.status, retryAfterMs);
    } catch {
      // Network errors and aborts look alike. A time-out before the first event means a proxy that collects responses.
      return by === "stream" && abort.signal.aborted && !signal.aborted
        ? { kind: "held_back" }
        : failed(by);
    } finally {
      cancel();
      // Ends a response that was not read to its end, and removes the listener.
      stop();
    }
  }

  return {
    streams: contextHeader.length <= maxContextHeaderLength,
    poll({ signal, tag, onValues }) {
      const headers: Record<string, string> = { authorization, "content-type": "application/json" };
      if (tag !== undefined) headers["if-none-match"] = tag;
      const init = { method: "POST", headers, body: contextJson };
      return attempt({ by: "poll", init, signal }, async (response) => {
        if (response.status === 304 && tag !== undefined) onValues(undefined);
        else {
          const message = parseMessage(await response.text());
          if (!message) return failed("poll");
          onValues({ ...message, isFull: true, tag: response.headers.get("etag") ?? undefined });
        }
        return { kind: "polled" };
      });
    },
    stream({ signal, tag, onValues }) {
      const headers: Record<string, string> = { authorization };
      if (contextJson !== "{}") headers["x-user-context"] = contextHeader;
      if (tag !== undefined) headers["last-event-id"] = tag;
      return attempt({ by: "stream", init: { headers }, signal }, (response, extend) =>
        readStream(response, { clock, onValues, onEvent: () => extend(silenceTimeoutMs) }),
      );
    },
  };
}

/** Reads events until the end of the stream. Rejects if the stream breaks before its first event. */
async function readStream(
  response: Response,
  options: { clock: Clock; onValues: EdgeRequest["onValues"]; onEvent: () => void },
): Promise<Outcome> {
  const { clock, onValues, onEvent } = options;
  const isStream = response.headers.get("content-type")?.includes("event-stream");
  if (!isStream || !response.body) return { kind: "held_back" };
  const read = createEventReader();
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let openedAtMs: number | undefined;
  let retryMs = defaultRetryMs;
  // The edge sends all values before the first heartbeat, unless the client has them.
  let isFull = true;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      for (const { event, id, data = "", retry } of read(decoder.decode(value, { stream: true }))) {
        retryMs = Number(retry ?? retryMs);
        if (event !== "values" && event !== "heartbeat") continue;
        const message = event === "values" ? parseMessage(data) : undefined;
        if (event === "values" && (!message || id === undefined)) return failed("stream");
        openedAtMs ??= clock.now();
        onEvent();
        if (message) onValues({ ...message, isFull, tag: id });
        else if (isFull) onValues(undefined);
        isFull = false;
      }
    }
  } catch (error) {
    if (openedAtMs === undefined) throw error;
  }
  return openedAtMs === undefined
    ? failed("stream")
    : { kind: "streamed", livedMs: clock.now() - openedAtMs, retryMs };
}

/** Returns the outcome of a failed attempt. Status 0: there was no valid response. */
function failed(by: Route, status = 0, retryAfterMs = 0): Outcome {
  return { kind: "failed", by, status, retryAfterMs };
}
