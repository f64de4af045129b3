import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { errorBodyFor, errorCodes } from "@halyard/contracts";
import type { FastifyReply, FastifyRequest } from "fastify";
import { createProblem, type Problem } from "./answer.ts";
import { anyOriginHeaders, isOpenToAllOrigins } from "./any-origin.ts";
import { noSuchRoute, sendProblem, setCommonHeaders, writeProblem } from "./error-answers.ts";
import type { RequestLog } from "./limit-error-lines.ts";
import { logRejected } from "./request-record.ts";
import { pathAndQueryOf } from "./request-target.ts";

/**
 * Input that the HTTP parser rejects never becomes a request, so the error response is written to the socket directly.
 * It has the same shape as any other error.
 */
type SocketWithAnswer = Socket & {
  /** Internal member of Node: the response that is being written to this connection. */
  _httpMessage?: { headersSent: boolean; req: IncomingMessage } | null;
};

function problemOf(code: string): Problem {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return createProblem("VALIDATION_002", "The request's headers are too large");
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return createProblem("VALIDATION_002", "The body's chunk extensions are too large");
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return createProblem("VALIDATION_001", "The request did not arrive in time");
    default:
      return createProblem("VALIDATION_001", "The request is not valid HTTP");
  }
}

/** An error of Node's parser. `rawPacket` contains the bytes with the error. */
type ParserError = Error & { code?: string; rawPacket?: unknown };

const requestLine = /^[A-Z]+ (\S+) HTTP\/1\.[01]\r\n/;

/**
 * Returns the target of the request with the error. It is undefined if the request line arrived in an earlier packet
 * than the error, because Node does not keep that packet.
 */
function targetOf({ rawPacket }: ParserError, socket: SocketWithAnswer): string | undefined {
  const packet = Buffer.isBuffer(rawPacket) ? rawPacket.toString("latin1") : "";
  const [, target = socket._httpMessage?.req.url] = requestLine.exec(packet) ?? [];
  return target === undefined ? undefined : pathAndQueryOf(target);
}

/** The parts of an app that error responses need here. */
type AppParts = {
  logger: RequestLog;
  /** Creates an id for a request whose own id could not be read. */
  makeRequestId: (request: Pick<IncomingMessage, "headers">) => string;
};

type SocketAnswer = { problem: Problem; target: string | undefined };

function writeToSocket(
  socket: SocketWithAnswer,
  { problem, target }: SocketAnswer,
  { logger, makeRequestId }: AppParts,
): void {
  // While the response is sent, the parser also rejects all later input.
  if (socket.writableEnded) return;
  // In the middle of another response, the client would read this one as a part of it.
  if (!socket.writable || socket._httpMessage?.headersSent === true) {
    socket.destroy();
    return;
  }
  const { status } = errorCodes[problem.rejected];
  const requestId = makeRequestId({ headers: {} });
  logRejected(logger, { requestId, target, status });
  const body = JSON.stringify(errorBodyFor(target ?? "", problem.rejected, problem.message));
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    "Content-Type: application/json; charset=utf-8",
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    "X-Content-Type-Options: nosniff",
    // Without a target, the request may have come from a page that is allowed to read the error.
    ...(target === undefined || isOpenToAllOrigins(target) ? anyOriginLines : []),
    "Connection: close",
  ].join("\r\n");
  socket.end(`${head}\r\n\r\n${body}`);
  // The rest of the input is read and discarded. Closing the connection with unread bytes would reset it, and the
  // client might lose the response.
  socket.resume();
  const linger = setTimeout(() => socket.destroy(), maxLingerMs);
  socket.once("close", () => clearTimeout(linger));
}

const anyOriginLines = Object.entries(anyOriginHeaders).map(([name, value]) => `${name}: ${value}`);

/** Maximum time that a client can hold the connection after an error by sending more data. */
const maxLingerMs = 1_000;

export function answerClientError(error: ParserError, socket: Socket, parts: AppParts): void {
  // A paused socket is not read, for example while a pipelined request waits. Then the client is not late.
  if (error.code === "ERR_HTTP_REQUEST_TIMEOUT" && socket.isPaused()) return;
  // Browsers open connections in advance. One that sends its first request at this moment would read an answer that
  // belongs to no request; if the connection is closed, the browser sends the request on another one.
  const isUnused = error.code === "ERR_HTTP_REQUEST_TIMEOUT" && socket.bytesRead === 0;
  if (error.code === "ECONNRESET" || isUnused || socket.destroyed) socket.destroy();
  else {
    const problem = problemOf(error.code ?? "");
    writeToSocket(socket, { problem, target: targetOf(error, socket) }, parts);
  }
}

const hostMissing = createProblem("VALIDATION_001", "The header Host is missing");

const hostRepeated = createProblem("VALIDATION_001", "The header Host must be given once");

const onlyChunked = createProblem("VALIDATION_001", "Transfer-Encoding must be chunked", {
  connection: "close",
});

/** Returns the problem of headers that Node accepts but HTTP forbids or no service implements. */
function problemOfHeaders(request: IncomingMessage): Problem | undefined {
  const { headers, httpVersion } = request;
  if (headers.host === undefined && httpVersion === "1.1") return hostMissing;
  if (hasTwoHosts(request.rawHeaders)) return hostRepeated;
  const coding = headers["transfer-encoding"];
  // Node decodes the chunks of `gzip, chunked` and leaves the rest to the application.
  return coding === undefined || coding.toLowerCase() === "chunked" ? undefined : onlyChunked;
}

/** Returns whether `Host` occurs twice. Node uses the first one, and another server may use the second. */
function hasTwoHosts(rawHeaders: readonly string[]): boolean {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length === 4 && name.toLowerCase() === "host") hosts += 1;
  }
  return hosts > 1;
}

/** Rejects a request whose headers Node accepts but HTTP forbids. Returns whether it did. */
export function rejectMalformed(request: FastifyRequest, reply: FastifyReply): boolean {
  const problem = problemOfHeaders(request.raw);
  if (problem === undefined) return false;
  setCommonHeaders(request, reply);
  sendProblem(reply, problem);
  return true;
}

/** Handles requests that Node would otherwise reject without a body or without a response. */
export function answerOddRequests(server: Server, parts: AppParts): void {
  server.on("checkExpectation", (request: IncomingMessage, response: ServerResponse) => {
    const problem = createProblem("VALIDATION_001", "The header Expect must be 100-continue");
    const requestId = parts.makeRequestId(request);
    request.url = pathAndQueryOf(request.url ?? "");
    writeProblem(response, problem, {
      "X-Request-Id": requestId,
      "X-Content-Type-Options": "nosniff",
    });
    logRejected(parts.logger, { requestId, target: request.url, status: response.statusCode });
  });
  server.on("connect", (_request: IncomingMessage, socket: Socket) => {
    writeToSocket(socket, { problem: noSuchRoute, target: undefined }, parts);
  });
}
