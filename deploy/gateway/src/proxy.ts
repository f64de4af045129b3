import { Agent, type ClientRequest, type IncomingMessage, request as openRequest } from "node:http";
import { pipeline } from "node:stream";
import { createProblem, type Problem, writeProblem } from "@halyard/http";
import { addressBlock } from "@halyard/rate-limit";
import type { FastifyReply, FastifyRequest } from "fastify";
import { requestHeaders, responseHeaders } from "./forwarded-headers.ts";
import { isUnreachable } from "./is-unreachable.ts";
import { createOpenStreams, type OpenStreams } from "./open-streams.ts";
import type { RepeatedLog } from "./repeated-log.ts";
import { hasArrived, hasBody, sendBody, whenBuffered } from "./send-body.ts";
import type { Service } from "./service.ts";
import type { Slot } from "./slots.ts";
import { UpstreamSilent } from "./upstream-silent.ts";

/**
 * Forwards requests and responses as streams that are never parsed. It uses `node:http` directly, because the time
 * limits, retries and headers of proxy libraries contradict the rules below, and may change with each version.
 *
 * Each event of an edge is forwarded in the same turn of the event loop. A request first waits for a slot of its
 * service. A body of up to 64 KiB is received before that, so that a slow client holds no slot.
 *
 * No write is sent twice. When the connection fails after a write was sent, neither the client nor the gateway can tell
 * whether it was applied. Only the client's `Idempotency-Key` or `If-Match` makes a repetition safe. A read without a
 * body is repeated once, over a new connection, if the connection broke before the response. A read that timed out is
 * not repeated, because the cause may be something that all processes wait for. If no connection could be established,
 * the request was not sent. It goes to the next process, even if it is a write; its body is not read before there is a
 * connection.
 *
 * A process that starts or drains responds with 503 and closes the connection. The gateway sends a read without a body
 * to the next process, because an `EventSource` that receives a 503 never reconnects.
 *
 * A process is excluded for a moment if it is unreachable, breaks a connection before its response, starts or drains.
 * This applies to reads and writes. Such a process has the fewest unanswered requests and would otherwise receive all
 * others.
 *
 * When the client disconnects, the request to the upstream ends. When the upstream breaks off during a response, the
 * gateway breaks the client's connection, because a normal end of the stream would look like a complete response.
 */
type ProxyOptions = {
  service: Service;
  isTrustedPeer: (address: string) => boolean;
  /** Maximum silence of an upstream between the end of the request and the start of its response. */
  answerWithinMs: number;
};

type Forward = (request: FastifyRequest, reply: FastifyReply) => void;

/** Maximum silence within a body or a response: four heartbeats of a stream. */
const maxSilenceMs = 60_000;

/** Maximum number of idle connections to each upstream. */
const maxIdleConnections = 256;

/** Maximum number of attempts. Several processes may restart at the same time. */
const maxAttempts = 4;

export type Proxy = {
  createForward: (options: ProxyOptions) => Forward;
  /** Ends the open streams, so that their readers connect to another gateway. */
  drain: () => Promise<void>;
  close: () => void;
};

type ProxyParts = {
  warn: RepeatedLog;
  /** Called for each request that got no slot in time. */
  rejected: () => void;
};

export function createProxy(parts: ProxyParts): Proxy {
  const agent = new Agent({
    keepAlive: true,
    maxSockets: Number.POSITIVE_INFINITY,
    maxFreeSockets: maxIdleConnections,
    timeout: maxSilenceMs,
  });
  const newConnections = new Agent({ keepAlive: false, timeout: maxSilenceMs });
  const streams = createOpenStreams();
  return {
    createForward: (options) => (request, reply) => {
      // From here on, Fastify neither reads the body nor responds.
      reply.hijack();
      const exchange = { ...options, ...parts, agent, newConnections, streams, request, reply };
      whenBuffered(request.raw, () => void forward(exchange, maxAttempts - 1));
    },
    drain: streams.drain,
    close: () => {
      agent.destroy();
      newConnections.destroy();
    },
  };
}

type Exchange = ProxyOptions &
  ProxyParts & {
    agent: Agent;
    /** Opens a new connection for each request, so that no request uses a connection that is being closed. */
    newConnections: Agent;
    streams: OpenStreams;
    request: FastifyRequest;
    reply: FastifyReply;
    /** The read was already sent once, over a connection that broke. */
    isRepeated?: true;
  };

async function forward(exchange: Exchange, attemptsLeft: number): Promise<void> {
  const { request, reply, service } = exchange;
  const slots = hasArrived(request.raw) ? service.slots : service.slotsForUploads;
  const slotRequest = slots.request(addressBlock(request.ip));
  reply.raw.once("close", slotRequest.cancel);
  const slot = await slotRequest.slot;
  reply.raw.off("close", slotRequest.cancel);
  if (reply.raw.destroyed) slot?.release();
  else if (slot === undefined) {
    exchange.rejected();
    answer(exchange, busy);
  } else send(exchange, slot, attemptsLeft);
}

function send(exchange: Exchange, slot: Slot, attemptsLeft: number): void {
  const { request, reply, service } = exchange;
  const { upstream } = slot;
  const caller = request.raw;
  const outgoing = open(exchange, slot);
  const leave = () => outgoing.destroy();
  reply.raw.once("close", leave);
  outgoing.on("timeout", () => outgoing.destroy(new UpstreamSilent(upstream.origin)));
  outgoing.once("close", slot.release);
  let answered = false;
  outgoing.once("response", (incoming) => {
    answered = true;
    const isLeaving = asksToReconnect(incoming);
    // This precedes the release, which sends the next waiting request and must not choose this process.
    if (isLeaving) service.upstreams.leaveOut(upstream);
    slot.release();
    if (isLeaving && isRead(caller) && attemptsLeft > 0) {
      reply.raw.off("close", leave);
      incoming.resume();
      void forward({ ...exchange, agent: exchange.newConnections }, attemptsLeft - 1);
      return;
    }
    incoming.setTimeout(maxSilenceMs);
    forwardResponse(exchange, incoming);
  });
  outgoing.on("error", (error: NodeJS.ErrnoException) => {
    caller.unpipe(outgoing);
    reply.raw.off("close", leave);
    if (answered || reply.raw.destroyed) return;
    answered = true;
    const unreachable = isUnreachable(error);
    const broke = brokeOff(error);
    if (unreachable || broke) service.upstreams.leaveOut(upstream);
    slot.release();
    if (unreachable && attemptsLeft > 0) void forward(exchange, attemptsLeft - 1);
    else if (broke && isRead(caller) && exchange.isRepeated !== true)
      void forward({ ...exchange, agent: exchange.newConnections, isRepeated: true }, attemptsLeft);
    else giveUp(exchange, slot, error);
  });
  const sent = () => {
    if (!answered) outgoing.setTimeout(exchange.answerWithinMs);
  };
  // The time limit starts after the whole body was sent. A slow client is not the fault of the upstream.
  if (hasBody(caller)) outgoing.once("finish", sent);
  else sent();
  sendBody(caller, outgoing);
}

function open({ agent, isTrustedPeer, request }: Exchange, { upstream }: Slot): ClientRequest {
  const caller = request.raw;
  const peer = caller.socket.remoteAddress ?? "";
  return openRequest(upstream.origin, {
    agent,
    method: request.method,
    path: caller.url,
    headers: requestHeaders(caller, {
      requestId: request.id,
      peer,
      peerIsTrusted: isTrustedPeer(peer),
    }),
  });
}

/** Returns whether the upstream broke an established connection. */
function brokeOff({ code }: NodeJS.ErrnoException): boolean {
  return code === "ECONNRESET" || code === "EPIPE";
}

/** Returns whether a process starts or drains. A new connection through a load balancer reaches another process. */
function asksToReconnect({ statusCode, headers }: IncomingMessage): boolean {
  return statusCode === 503 && headers.connection === "close";
}

function isRead(caller: IncomingMessage): boolean {
  return (caller.method === "GET" || caller.method === "HEAD") && !hasBody(caller);
}

function forwardResponse({ request, reply, streams }: Exchange, incoming: IncomingMessage): void {
  const headers = responseHeaders(incoming);
  if (incoming.headers["x-request-id"] === undefined) headers.push("X-Request-Id", request.id);
  if (reply.getHeader("connection") === "close") headers.push("Connection", "close");
  reply.raw.writeHead(incoming.statusCode as number, incoming.statusMessage, headers);
  // The first byte of a body of unknown length may take long. The headers do not wait for it.
  if (incoming.headers["content-length"] === undefined) reply.raw.flushHeaders();
  if (incoming.headers["content-type"]?.startsWith("text/event-stream")) streams.add(reply.raw);
  pipeline(incoming, reply.raw, (error) => {
    if (error) request.log.debug({ err: error }, "answer broken off");
  });
}

const retrySoon = { "retry-after": "1" };

const unavailable = createProblem(
  "SERVER_002",
  "The service is temporarily unavailable; retry after 1 s.",
  retrySoon,
);

const busy = createProblem("SERVER_002", "The service is busy; retry after 1 s.", retrySoon);

const timedOut = createProblem(
  "SERVER_002",
  "Timed out. A change may have been applied: check before retrying.",
  retrySoon,
);

function giveUp(exchange: Exchange, { upstream }: Slot, error: NodeJS.ErrnoException): void {
  const { request, reply } = exchange;
  const cause = `${upstream.origin.origin} ${error.code ?? error.name}`;
  exchange.warn({ cause, err: error, request_id: request.id }, "request not forwarded");
  if (reply.raw.headersSent) reply.raw.destroy();
  else answer(exchange, error instanceof UpstreamSilent ? timedOut : unavailable);
}

function answer({ request, reply }: Exchange, problem: Problem): void {
  writeProblem(reply.raw, problem, reply.getHeaders() as Record<string, string>);
  // The rest of the body is read and dropped, so that the client receives the response.
  request.raw.resume();
}
