import { Agent, type ClientRequest, type IncomingMessage, request as openRequest } from "node:http";
import { pipeline } from "node:stream";
import { type Refusal, refuse, writeRefusal } from "@halyard/service";
import type { FastifyReply, FastifyRequest } from "fastify";
import { createOpenStreams, type OpenStreams } from "./open-streams.ts";
import { requestHeaders, responseHeaders } from "./passed-headers.ts";
import { hasBody, sendBody } from "./send-body.ts";
import { UpstreamSilent } from "./upstream-silent.ts";
import type { Upstream, Upstreams } from "./upstreams.ts";

/**
 * Passes a request on and its answer back, both as streams that are never parsed or held: an event
 * that an edge writes leaves with the same turn of the loop. Each open stream has a connection of its
 * own to its edge; there is no pool to exhaust.
 *
 * No write is sent twice. A caller whose write failed on the way cannot tell whether it was done, and
 * neither can we; only its own `Idempotency-Key` or `If-Match` makes a repetition safe. A read without
 * a body is sent a second time, over a new connection, when the kept connection that it took broke
 * off without an answer: as a rule its upstream was just closing it. A read that got no answer in time
 * is not, because whoever is too slow is not helped by being asked again, nor is what it waits for, which
 * its replicas wait for too. What met no connection at all was not sent, so it goes to the next upstream,
 * whatever it is; for that its body is not touched before there is one.
 *
 * A process that starts or drains answers 503 and closes the connection. The gateway leaves it out for a
 * moment and sends a read without a body to the next process, so that no reconnecting stream meets the
 * process that has just ended it. An `EventSource` that receives a 503 never reconnects.
 *
 * When either side goes, so does the other: a caller that leaves ends the upstream's work, an upstream
 * that breaks off in the middle of an answer breaks off the caller's connection, because the end of a
 * stream would look like a complete answer.
 */
export type ProxyOptions = {
  upstreams: Upstreams;
  isTrustedPeer: (address: string) => boolean;
  /** Headers of the answers that the gateway gives itself on these routes. */
  ownHeaders: Readonly<Record<string, string>>;
  /** How long an upstream that has the whole request may be silent before its answer begins. */
  answerWithinMs: number;
};

export type Forward = (request: FastifyRequest, reply: FastifyReply) => void;

/** Four heartbeats of a stream; whoever is silent for longer in a body or an answer is gone, or stuck. */
const longestSilenceMs = 60_000;

/** Idle connections that are kept to each upstream; enough for bursts, few enough to forget. */
const keptConnections = 256;

/** A whole handful of processes may be restarted at once; a caller does not wait for more. */
const mostTurns = 4;

export type Proxy = {
  createForward: (options: ProxyOptions) => Forward;
  /** Ends the open streams, so that their readers connect to another gateway. */
  drain: () => Promise<void>;
  close: () => void;
};

export function createProxy(): Proxy {
  const agent = new Agent({
    keepAlive: true,
    maxSockets: Number.POSITIVE_INFINITY,
    maxFreeSockets: keptConnections,
    timeout: longestSilenceMs,
  });
  const newConnections = new Agent({ keepAlive: false, timeout: longestSilenceMs });
  const streams = createOpenStreams();
  return {
    createForward: (options) => (request, reply) => {
      // From here on the framework neither reads the body nor answers.
      reply.hijack();
      forward({ ...options, agent, newConnections, streams, request, reply }, mostTurns - 1);
    },
    drain: streams.drain,
    close: () => {
      agent.destroy();
      newConnections.destroy();
    },
  };
}

type Exchange = ProxyOptions & {
  agent: Agent;
  /** Keeps none, so that a request over it meets no connection that is just being closed. */
  newConnections: Agent;
  streams: OpenStreams;
  request: FastifyRequest;
  reply: FastifyReply;
};

function forward(exchange: Exchange, turnsLeft: number): void {
  const { agent, request, reply, upstreams } = exchange;
  const caller = request.raw;
  const upstream = upstreams.next(Date.now());
  const peer = caller.socket.remoteAddress ?? "";
  const outgoing = openRequest(upstream.origin, {
    agent,
    method: request.method,
    path: caller.url,
    headers: requestHeaders(caller, {
      requestId: request.id,
      peer,
      peerIsTrusted: exchange.isTrustedPeer(peer),
    }),
  });
  const leave = () => outgoing.destroy();
  reply.raw.once("close", leave);
  outgoing.on("timeout", () => outgoing.destroy(new UpstreamSilent(upstream.origin)));
  let answered = false;
  outgoing.once("response", (incoming) => {
    answered = true;
    const isLeaving = asksToReconnect(incoming);
    if (isLeaving) upstreams.away(upstream, Date.now());
    if (isLeaving && isRead(caller) && turnsLeft > 0) {
      reply.raw.off("close", leave);
      incoming.resume();
      forward({ ...exchange, agent: exchange.newConnections }, turnsLeft - 1);
      return;
    }
    incoming.setTimeout(longestSilenceMs);
    passBack(exchange, incoming);
  });
  outgoing.on("error", (error: NodeJS.ErrnoException) => {
    caller.unpipe(outgoing);
    reply.raw.off("close", leave);
    if (answered || reply.raw.destroyed) return;
    answered = true;
    const now = Date.now();
    const unsent = isUnsent(error);
    if (unsent) upstreams.away(upstream, now);
    if (unsent && upstreams.isAnyHere(now) && turnsLeft > 0) forward(exchange, turnsLeft - 1);
    else if (brokeOff(outgoing, error) && isRead(caller))
      forward({ ...exchange, agent: exchange.newConnections }, turnsLeft);
    else giveUp(exchange, upstream, error);
  });
  const sent = () => {
    if (!answered) awaitAnswer(exchange, upstream, outgoing);
  };
  // A caller may take its time to send a body; that says nothing of the upstream.
  if (hasBody(caller)) outgoing.once("finish", sent);
  else sent();
  sendBody(caller, outgoing);
}

function awaitAnswer(
  { upstreams, answerWithinMs }: Exchange,
  upstream: Upstream,
  outgoing: ClientRequest,
): void {
  outgoing.setTimeout(answerWithinMs);
  const waiting = upstreams.waits(upstream, Date.now());
  outgoing.once("response", () => waiting.answered(Date.now()));
  outgoing.once("close", () => waiting.ended(Date.now()));
}

/** No connection was made, or the upstream's name has no address, as that of a stopped container. */
function isUnsent({ syscall, code }: NodeJS.ErrnoException): boolean {
  return syscall === "connect" || syscall === "getaddrinfo" || code === "ECONNREFUSED";
}

/** Whether a connection that had been kept ended, as opposed to a new one, or to a long silence. */
function brokeOff(outgoing: ClientRequest, error: Error): boolean {
  return outgoing.reusedSocket && !(error instanceof UpstreamSilent);
}

/** The sign of a process that starts or drains. A new connection through a load balancer reaches another. */
function asksToReconnect({ statusCode, headers }: IncomingMessage): boolean {
  return statusCode === 503 && headers.connection === "close";
}

function isRead(caller: IncomingMessage): boolean {
  return (caller.method === "GET" || caller.method === "HEAD") && !hasBody(caller);
}

function passBack({ request, reply, streams }: Exchange, incoming: IncomingMessage): void {
  const headers = responseHeaders(incoming);
  if (incoming.headers["x-request-id"] === undefined) headers.push("X-Request-Id", request.id);
  if (reply.getHeader("connection") === "close") headers.push("Connection", "close");
  reply.raw.writeHead(incoming.statusCode as number, incoming.statusMessage, headers);
  // The first byte of a body of unknown length may take its time; its headers do not wait for it.
  if (incoming.headers["content-length"] === undefined) reply.raw.flushHeaders();
  if (incoming.headers["content-type"]?.startsWith("text/event-stream")) streams.add(reply.raw);
  pipeline(incoming, reply.raw, (error) => {
    if (error) request.log.debug({ err: error }, "answer broken off");
  });
}

const upstreamAway: Refusal = refuse("SERVER_002", "The service is away for a moment; try again", {
  "retry-after": "1",
});

const upstreamSilent: Refusal = refuse(
  "SERVER_002",
  "The service did not answer in time; if this was to change something, see whether it has before you try again",
  { "retry-after": "1" },
);

function giveUp(exchange: Exchange, upstream: Upstream, error: NodeJS.ErrnoException): void {
  const { request, reply } = exchange;
  request.log.warn({ err: error, upstream: upstream.origin.origin }, "upstream away");
  if (reply.raw.headersSent) {
    reply.raw.destroy();
    return;
  }
  writeRefusal(reply.raw, error instanceof UpstreamSilent ? upstreamSilent : upstreamAway, {
    ...exchange.ownHeaders,
    ...(reply.getHeaders() as Record<string, string>),
  });
}
