import { createEventReader } from "./event-reader.ts";
import {
  changedKeys,
  parseMessage,
  reuseEqual,
  type Values,
  type ValuesMessage,
  withDelta,
} from "./typed-values.ts";

/**
 * Returns a `fetch` for the options of `createClient`. Tabs of an origin that use it share one stream if they have the
 * same address, key and context. Without it, a seventh tab waits for a connection, because browsers open six to a server
 * with HTTP/1.1.
 *
 * One tab holds a Web Lock: the leader, which opens the stream and sends its events to all tabs over a
 * `BroadcastChannel`. When it leaves, the next tab continues with the values that it has. Clients in tabs that hear
 * nothing poll, as with any silent stream. All other requests are sent as usual, and so are streams where the browser
 * has no Web Locks, as in pages without HTTPS.
 */
export function shareStreams(options: { fetch?: typeof fetch } = {}): typeof fetch {
  const send: typeof fetch = options.fetch ?? ((...request) => fetch(...request));
  return (input, init = {}) => {
    const url = String(input);
    const isShared = url.includes("/api/v1/sdk/stream?") && globalThis.navigator?.locks;
    return isShared ? joinStream(url, init, send) : send(input, init);
  };
}

/** A leader keeps the lock for this time after the end of its stream. Clients wait longer before they reconnect. */
const endedLockMs = 100;

/** All values, and their tag. */
type Held = { values: Values; tag: string };

type Message =
  /** A tab without values asks the leader for them. */
  | { kind: "join" }
  /** All values: the answer to `join`, and the first message of a leader. */
  | ({ kind: "values"; retryMs: string } & Held)
  | ({ kind: "change"; tag: string } & ValuesMessage)
  | { kind: "heartbeat"; data: string }
  /** The stream ended, or the edge refused it. Status 0: there was no response. */
  | { kind: "end"; status: number; headers: Record<string, string> };

/** Receives the events of the stream as a response, and waits for the turn to lead. */
function joinStream(url: string, init: RequestInit, send: typeof fetch): Promise<Response> {
  const headers = new Headers(init.headers);
  const group = JSON.stringify([url, headers.get("authorization"), headers.get("x-user-context")]);
  return new Promise((resolve, reject) => {
    const channel = new BroadcastChannel(group);
    const left = new AbortController();
    const { signal } = left;
    const leave = () => {
      channel.close();
      left.abort();
    };
    const response = createRelayedResponse({ resolve, reject, leave });
    channel.onmessage = ({ data }: MessageEvent<Message>) => response.receive(data);
    init.signal?.addEventListener("abort", () => response.fail(init.signal?.reason), { signal });
    channel.postMessage({ kind: "join" } satisfies Message);
    navigator.locks
      .request(group, { signal }, () => {
        const held = response.held();
        return lead({ url, headers, channel: new BroadcastChannel(group), signal, send, held });
      })
      // The request rejects when this tab leaves.
      .catch(() => {});
  });
}

/** Creates a response whose body is written from the messages of the leader. It resolves with the first values. */
function createRelayedResponse(options: {
  resolve: (response: Response) => void;
  reject: (error: unknown) => void;
  leave: () => void;
}) {
  const { resolve, reject, leave } = options;
  const encoder = new TextEncoder();
  let held: Held | undefined;
  let body: ReadableStreamDefaultController<Uint8Array>;
  const readable = new ReadableStream<Uint8Array>({
    start(controller) {
      body = controller;
    },
    cancel: leave,
  });

  const write = (event: string) => body.enqueue(encoder.encode(`${event}\n\n`));
  const writeValues = (tag: string, data: object) =>
    write(`event: values\nid: ${tag}\ndata: ${JSON.stringify(data)}`);

  function fail(error: unknown): void {
    leave();
    reject(error);
    body.error(error);
  }

  function open({ retryMs, values, tag }: { retryMs: string } & Held): void {
    write(`retry: ${retryMs}`);
    writeValues(tag, { values });
    resolve(new Response(readable, { headers: { "content-type": "text/event-stream" } }));
  }

  function end({ status, headers }: Extract<Message, { kind: "end" }>): void {
    if (held) {
      leave();
      body.close();
    } else if (status) {
      leave();
      resolve(new Response(null, { status, headers }));
    } else fail(new TypeError("The leading tab has no connection."));
  }

  return {
    held: () => held,
    fail,
    receive(message: Message): void {
      if (message.kind === "end") end(message);
      else if (message.kind === "values") {
        const { values, tag } = message;
        if (!held) open(message);
        // Another tab leads now, and may have later values.
        else if (held.tag !== tag) writeValues(tag, differenceOf(held.values, values));
        held = { values, tag };
      } else if (held && message.kind === "change") {
        const { values, removed, tag } = message;
        held = { values: withDelta(held.values, message), tag };
        writeValues(tag, { values, removed });
      } else if (held && message.kind === "heartbeat")
        write(`event: heartbeat\ndata: ${message.data}`);
    },
  };
}

/** Opens the stream and sends its events to all tabs, also to this one, until it ends or this tab leaves. */
async function lead(options: {
  url: string;
  headers: Headers;
  channel: BroadcastChannel;
  signal: AbortSignal;
  send: typeof fetch;
  /** The values that this tab has received from an earlier leader. */
  held: Held | undefined;
}): Promise<void> {
  const { url, headers, channel, signal, send } = options;
  let { held } = options;
  let retryMs = "3000";
  let isLive = false;
  const post = (message: Message) => channel.postMessage(message);
  const postValues = () => held && post({ kind: "values", retryMs, ...held });
  channel.onmessage = ({ data }: MessageEvent<Message>) => {
    if (data.kind === "join" && isLive) postValues();
  };
  // The edge sends all values first, unless this tab has them.
  headers.delete("last-event-id");
  if (held) headers.set("last-event-id", held.tag);
  let end: Message = { kind: "end", status: 0, headers: {} };
  try {
    const response = await send(url, { headers, signal });
    const isStream = response.headers.get("content-type")?.includes("event-stream");
    if (!isStream || !response.body) end = refusalOf(response);
    else
      for await (const { event, id = "", data = "", retry } of eventsOf(response.body)) {
        retryMs = retry ?? retryMs;
        const message = event === "values" ? parseMessage(data) : undefined;
        if (event === "values" && !message) break;
        if (message && isLive && held) {
          held = { values: withDelta(held.values, message), tag: id };
          post({ kind: "change", ...message, tag: id });
        } else if (message) held = { values: message.values, tag: id };
        else if (event !== "heartbeat") continue;
        if (!isLive) postValues();
        isLive = true;
        if (!message) post({ kind: "heartbeat", data });
      }
  } catch {
    // The connection was lost, or this tab has left.
  }
  if (!signal.aborted) {
    post(end);
    // The others leave at this message. One that received the lock before would open another stream for nothing.
    await new Promise((resolve) => setTimeout(resolve, endedLockMs));
  }
  channel.close();
}

function refusalOf({ status, headers }: Response): Message {
  const kept = ["content-type", "retry-after"].map((name) => [name, headers.get(name) ?? ""]);
  return { kind: "end", status, headers: Object.fromEntries(kept) };
}

function differenceOf(before: Values, after: Values): ValuesMessage {
  const next = reuseEqual(before, after);
  const keys = changedKeys(before, next);
  return {
    values: Object.fromEntries(Object.entries(next).filter(([key]) => keys.includes(key))),
    removed: keys.filter((key) => !Object.hasOwn(next, key)),
  };
}

async function* eventsOf(body: ReadableStream<Uint8Array>) {
  const read = createEventReader();
  const decoder = new TextDecoder();
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield* read(decoder.decode(value, { stream: true }));
  }
}
