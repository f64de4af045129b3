import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Evaluated, Values } from "../../src/typed-values.ts";

/**
 * An edge over real HTTP whose flags and faults a test sets. It evaluates by a function of the context, and speaks the
 * protocol of `/api/v1/sdk/values` and `/api/v1/sdk/stream?values=true`.
 */
export type FakeEdge = {
  url: string;
  /** All requests except preflights, in order of arrival. */
  requests: FakeRequest[];
  /** Sets how flags are evaluated. Open streams receive the values that changed. */
  setFlags(evaluate: Evaluate | Flags): void;
  /** Sets the responses of a route. Undefined: as usual. */
  answer(route: Route, fault: Fault | undefined): void;
  /** The streams that are open, in order. */
  streams(): readonly FakeStream[];
  close(): Promise<void>;
};

/** A boolean is short for the value and the variation of a boolean flag. */
type Flags = Readonly<Record<string, boolean | Evaluated>>;
type Route = "values" | "stream";
type FakeRequest = {
  route: Route;
  context: Record<string, unknown>;
  headers: IncomingMessage["headers"];
};
type FakeStream = {
  context: Record<string, unknown>;
  /** Writes text as it is. */
  write(text: string): void;
  /** Ends the stream. */
  end(): void;
  /** Cuts the connection. */
  cut(): void;
};

/** A response that replaces the usual one. A function makes the response wait before the usual one. */
type Fault = { status: number; headers?: Record<string, string> } | "hang" | (() => Promise<void>);

type Evaluate = (context: Record<string, unknown>) => Flags;

export async function startFakeEdge(initial: Evaluate | Flags = {}): Promise<FakeEdge> {
  let evaluate = asEvaluate(initial);
  const requests: FakeRequest[] = [];
  const faults = new Map<Route, Fault>();
  const open = new Set<FakeStream & { update(): void }>();

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === "OPTIONS") {
      answerPreflight(response);
      return;
    }
    const route: Route = routeOf(request);
    const context = await contextOf(request);
    requests.push({ route, context, headers: request.headers });
    const fault = faults.get(route);
    if (fault === "hang") return;
    if (typeof fault === "function") await fault();
    if (typeof fault === "object")
      response.writeHead(fault.status, { ...anyOrigin, ...fault.headers }).end("{}");
    else if (route === "stream") openStream(request, response, context);
    else sendValues(request, response, evaluate(context));
  }

  function openStream(
    request: IncomingMessage,
    response: ServerResponse,
    context: Record<string, unknown>,
  ): void {
    response.writeHead(200, { ...anyOrigin, "content-type": "text/event-stream; charset=utf-8" });
    let sent = evaluate(context);
    response.write("retry: 3000\n\n");
    if (request.headers["last-event-id"] !== tagOf(sent))
      response.write(valuesEvent(tagOf(sent), { flags: sent }));
    response.write('event: heartbeat\ndata: {"timestamp":1}\n\n');
    const stream = {
      context,
      write: (text: string) => void response.write(text),
      end: () => void response.end(),
      cut: () => void response.destroy(),
      update() {
        const before = sent;
        sent = evaluate(context);
        if (tagOf(before) === tagOf(sent)) return;
        const flags = Object.fromEntries(
          Object.entries(sent).filter(
            ([key, value]) => JSON.stringify(before[key]) !== JSON.stringify(value),
          ),
        );
        const removed = Object.keys(before).filter((key) => !(key in sent));
        response.write(valuesEvent(tagOf(sent), { flags, ...(removed.length > 0 && { removed }) }));
      },
    };
    open.add(stream);
    response.once("close", () => open.delete(stream));
  }

  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    setFlags(next) {
      evaluate = asEvaluate(next);
      for (const stream of open) stream.update();
    },
    answer(route, fault) {
      if (fault === undefined) faults.delete(route);
      else faults.set(route, fault);
    },
    streams: () => [...open],
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

function asEvaluate(flags: Evaluate | Flags): Evaluate {
  return typeof flags === "function" ? flags : () => flags;
}

/** Returns the tag of values. */
export function tagOf(flags: Flags): string {
  return `"${createHash("sha256").update(JSON.stringify(flags)).digest("base64url").slice(0, 12)}"`;
}

export function valuesEvent(tag: string, data: { flags: Flags; removed?: string[] }): string {
  const { flags, ...rest } = data;
  const json = JSON.stringify({ values: evaluatedOf(flags), ...rest });
  return `event: values\nid: ${tag}\ndata: ${json}\n\n`;
}

function evaluatedOf(flags: Flags): Values {
  const entries = Object.entries(flags).map(([key, flag]) => {
    const variation = flag === true ? "on" : "off";
    return [key, typeof flag === "boolean" ? { value: flag, variation } : flag] as const;
  });
  return Object.fromEntries(entries);
}

function sendValues(request: IncomingMessage, response: ServerResponse, flags: Flags): void {
  const etag = tagOf(flags);
  if (request.headers["if-none-match"] === etag)
    response.writeHead(304, { ...anyOrigin, etag }).end();
  else
    response
      .writeHead(200, { ...anyOrigin, etag, "content-type": "application/json; charset=utf-8" })
      .end(JSON.stringify({ values: evaluatedOf(flags) }));
}

/** @throws Error for another address */
function routeOf({ url }: IncomingMessage): Route {
  if (url === "/api/v1/sdk/stream?values=true") return "stream";
  if (url === "/api/v1/sdk/values") return "values";
  throw new Error(`No such route: ${url}`);
}

async function contextOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  if (request.method === "GET")
    return JSON.parse(String(request.headers["x-user-context"] ?? "{}"));
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return JSON.parse(Buffer.concat(parts).toString("utf8"));
}

const anyOrigin = {
  "access-control-allow-origin": "*",
  "access-control-expose-headers": "ETag, Retry-After",
};

/** Allows the headers that the edge allows. */
function answerPreflight(response: ServerResponse): void {
  response
    .writeHead(204, {
      "access-control-allow-origin": "*",
      "access-control-allow-methods": "GET, POST",
      "access-control-allow-headers":
        "Authorization, Content-Type, If-None-Match, Last-Event-ID, X-User-Context",
    })
    .end();
}
