import { Agent, type ClientRequest, type IncomingMessage, request as openRequest } from "node:http";
import { pipeline } from "node:stream";
import { allowLongBody, boundBody, createProblem, type Problem, writeProblem } from "@halyard/http";
import type { Logger } from "@halyard/service";
import type { FastifyReply, FastifyRequest } from "fastify";
import { hasBody, requestHeaders, responseHeaders } from "./forwarded-headers.ts";
import type { Upstreams } from "./upstreams.ts";

/**
 * Forwards requests and responses as streams that are never parsed. It uses `node:http` directly, because the retries
 * and headers of proxy libraries contradict the rules below, which HAProxy follows too.
 *
 * No write is sent twice. When the connection fails after a write was sent, neither the client nor the gateway can tell
 * whether it was applied. If no connection could be established, nothing was sent, and the request goes to the next
 * process. A read without a body is repeated once if the connection broke before the response, and goes to the next
 * process if this one starts or drains, because an `EventSource` that receives a 503 never reconnects.
 *
 * When the client disconnects, the request to the process ends. When the process breaks off during a response, the
 * client's connection breaks, because a normal end of the stream would look like a complete response.
 */
type ProxyOptions = {
  upstreams: Upstreams;
  /** Maximum silence of a process between the end of the request and the start of its response. */
  answerWithinMs: number;
};

type ProxyParts = { logger: Logger; isTrustedPeer: (address: string) => boolean };

type Forward = (request: FastifyRequest, reply: FastifyReply) => void;

type Proxy = {
  createForward: (options: ProxyOptions) => Forward;
  /** Ends the open streams. */
  drain: () => Promise<void>;
  close: () => Promise<void>;
};

/** Maximum silence within a body or a response: four heartbeats of a stream. */
const maxSilenceMs = 60_000;

/** Maximum number of attempts. Several processes may restart at the same time. */
const maxAttempts = 4;

export function createProxy(parts: ProxyParts): Proxy {
  const agent = new Agent({ keepAlive: true, timeout: maxSilenceMs });
  const streams = new Set<FastifyReply>();
  return {
    createForward: (options) => (request, reply) => {
      // From here on, Fastify neither reads the body nor responds.
      reply.hijack();
      send({ ...options, ...parts, agent, streams, request, reply }, maxAttempts - 1);
    },
    drain: async () => {
      for (const { raw } of streams) raw.destroy();
    },
    close: async () => agent.destroy(),
  };
}

type Exchange = ProxyOptions &
  ProxyParts & {
    /** False: each request opens a new connection, so that none uses a connection that is being closed. */
    agent: Agent | false;
    streams: Set<FastifyReply>;
    request: FastifyRequest;
    reply: FastifyReply;
    /** The read was already sent once, over a connection that broke. */
    isRepeated?: true;
  };

function send(exchange: Exchange, attemptsLeft: number): void {
  const { request, reply, upstreams } = exchange;
  const caller = request.raw;
  const origin = upstreams.next();
  const outgoing = open(exchange, origin);
  const leave = () => outgoing.destroy();
  reply.raw.once("close", leave);
  const sendAgain = (change: Partial<Exchange> = {}) => {
    reply.raw.off("close", leave);
    caller.unpipe(outgoing);
    send({ ...exchange, ...change }, attemptsLeft - 1);
  };
  let isAnswered = false;
  let isSilent = false;
  outgoing.on("timeout", () => {
    isSilent = true;
    outgoing.destroy(new Error("no response in time"));
  });
  outgoing.once("response", (incoming) => {
    isAnswered = true;
    const isLeaving = asksToReconnect(incoming);
    if (isLeaving) upstreams.leaveOut(origin);
    if (isLeaving && isRead(caller) && attemptsLeft > 0) {
      incoming.resume();
      sendAgain({ agent: false });
    } else forwardResponse(exchange, incoming);
  });
  outgoing.on("error", (error: NodeJS.ErrnoException) => {
    if (isAnswered || reply.raw.destroyed) return;
    const isUnreachable = error.syscall === "connect" || error.syscall === "getaddrinfo";
    const isBroken = error.code === "ECONNRESET" || error.code === "EPIPE";
    if (isUnreachable || isBroken) upstreams.leaveOut(origin);
    if (isUnreachable && attemptsLeft > 0) sendAgain();
    else if (isBroken && isRead(caller) && exchange.isRepeated !== true)
      sendAgain({ agent: false, isRepeated: true });
    else {
      exchange.logger.warn({ err: error, request_id: request.id, origin: origin.origin }, notSent);
      answer(exchange, isSilent ? timedOut : unavailable);
    }
  });
  // The time limit starts after the whole body was sent. A slow client is not the fault of the process.
  outgoing.once("finish", () => {
    if (!isAnswered) outgoing.setTimeout(exchange.answerWithinMs);
  });
  sendBody(request.raw, outgoing);
}

const notSent = "request not forwarded";

function open({ agent, isTrustedPeer, request }: Exchange, origin: URL): ClientRequest {
  const caller = request.raw;
  const peer = caller.socket.remoteAddress ?? "";
  const headers = requestHeaders(caller, {
    ...{ requestId: request.id, peer },
    peerIsTrusted: isTrustedPeer(peer),
  });
  return openRequest(origin, { agent, method: request.method, path: caller.url, headers });
}

/** Forwards the client's body as it arrives. It is not read before the connection to the process is established. */
function sendBody(caller: IncomingMessage, outgoing: ClientRequest): void {
  if (!hasBody(caller)) {
    outgoing.end();
    return;
  }
  // `pipeline` would destroy the client's connection if the process responds before it has read the whole body and then
  // closes. The response must still be sent over that connection.
  // Only uploads use `PUT`. The process bounds those that it does not admit.
  if (caller.method === "PUT") allowLongBody(caller);
  const pipe = () => {
    caller.pipe(outgoing);
    outgoing.once("close", () => {
      caller.unpipe(outgoing);
      caller.resume();
      boundBody(caller);
    });
  };
  outgoing.once("socket", (socket) => (socket.connecting ? socket.once("connect", pipe) : pipe()));
}

/** Returns whether a process starts or drains. */
function asksToReconnect({ statusCode, headers }: IncomingMessage): boolean {
  return statusCode === 503 && headers.connection === "close";
}

function isRead(caller: IncomingMessage): boolean {
  return (caller.method === "GET" || caller.method === "HEAD") && !hasBody(caller);
}

function forwardResponse({ request, reply, streams }: Exchange, incoming: IncomingMessage): void {
  const headers = responseHeaders(incoming);
  if (incoming.headers["x-request-id"] === undefined) headers.push("X-Request-Id", request.id);
  incoming.setTimeout(maxSilenceMs);
  reply.raw.writeHead(incoming.statusCode as number, incoming.statusMessage, headers);
  // The first byte of a body of unknown length may take long. The headers do not wait for it.
  if (incoming.headers["content-length"] === undefined) reply.raw.flushHeaders();
  if (incoming.headers["content-type"]?.startsWith("text/event-stream")) {
    streams.add(reply);
    reply.raw.once("close", () => streams.delete(reply));
  }
  pipeline(incoming, reply.raw, (error) => {
    if (error) request.log.debug({ err: error }, "response broken off");
  });
}

const retrySoon = { "retry-after": "1" };

const unavailable = createProblem(
  "SERVER_002",
  "The service is temporarily unavailable; retry after 1 s.",
  retrySoon,
);

const timedOut = createProblem(
  "SERVER_002",
  "Timed out. A change may have been applied: check before retrying.",
  retrySoon,
);

function answer({ request, reply }: Exchange, problem: Problem): void {
  writeProblem(reply.raw, problem, {
    "X-Request-Id": request.id,
    "X-Content-Type-Options": "nosniff",
  });
  // The rest of the body is read and dropped, so that the client receives the response.
  request.raw.resume();
}
