import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { DirectoryKey } from "@halyard/api-keys";
import { cacheHeadersOf, type RouteContract, type UsageEndpoint } from "@halyard/contracts";
import {
  anyOriginHeaders,
  type BodyReading,
  bodyTooLarge,
  createProblem,
  type FailureLog,
  isJsonType,
  isProblem,
  namesTag,
  notJson,
  type Problem,
  parseJsonBody,
  writeProblem,
} from "@halyard/http";
import type { FastifyRequest } from "fastify";
import { type LimitFields, nameFurtherLimits, noLimitFields } from "../admission/limits.ts";
import type { AnswerCounts } from "./answer-counts.ts";

// The hot path replaces the steps of `registerRoute`: it reads bodies and writes responses without the framework, which
// would take longer than all other work of a request. `npm run bench -- flags targeting` measures this file, and its
// comments name the benchmark of each choice.

/** Endpoints whose requests do not count. */
export type FreeEndpoint = "usage" | "list";

/** A route of the hot path. */
type HotRoute = {
  contract: RouteContract;
  /** Name in metrics and in logs. */
  name: UsageEndpoint | FreeEndpoint;
  /** Returns the problem of a request that is rejected. Otherwise sets the exchange's key and its limits. */
  admit: (exchange: SdkExchange, request: FastifyRequest) => Problem | undefined;
  /** Responds to an admitted request, possibly later. */
  respond: (exchange: SdkExchange) => void;
  /** Responds to an admitted request whose body has arrived. Its key may have ended meanwhile. */
  respondToBody: (exchange: SdkExchange) => void;
  /** False for a route that ignores bodies. */
  readsBody: boolean;
};

/** The parts of an edge that its responses need. */
type AnsweringParts = { counts: AnswerCounts; failureLog: FailureLog; now: () => number };

/** The parts of a route that its responses need. */
type AnsweringRoute = Pick<HotRoute, "name"> &
  Pick<AnsweringParts, "counts" | "failureLog"> & {
    /** `Cache-Control` and `Vary`: names and values in turn. */
    cacheHeaders: readonly string[];
  };

/** Returns the function that takes the requests of a route from `registerRoute`. */
export function takeRequests(
  route: HotRoute,
  { counts, failureLog, now }: AnsweringParts,
): (request: FastifyRequest, response: ServerResponse) => void {
  const { contract, name, admit, respond, respondToBody, readsBody } = route;
  const cacheHeaders = Object.entries(cacheHeadersOf(contract)).flat();
  const answering = { name, cacheHeaders, counts, failureLog };
  return (request, response) => {
    const exchange = new SdkExchange(answering, request, response, now());
    try {
      const problem = admit(exchange, request);
      if (problem !== undefined) exchange.reject(problem);
      else if (readsBody && announcesBody(request.raw)) readBody(exchange, respondToBody);
      else respond(exchange);
    } catch (error) {
      exchange.fail(error);
    }
  };
}

/**
 * A request of an SDK and its response, which is written to Node's response.
 */
export class SdkExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly headers: IncomingHttpHeaders;
  readonly id: string;
  /** Path and query parameters, as the router parsed them. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, unknown>>;
  /** Time of arrival. The clock is read once for each request. */
  readonly nowMs: number;
  /** The key of the caller. Set before the route responds. */
  key!: DirectoryKey;
  /** Empty before the limits of the key are checked. */
  rateLimit: LimitFields = noLimitFields;
  /** The parsed JSON body. */
  body: unknown = undefined;
  readonly #route: AnsweringRoute;

  constructor(
    route: AnsweringRoute,
    request: FastifyRequest,
    response: ServerResponse,
    nowMs: number,
  ) {
    this.request = request.raw;
    this.response = response;
    this.headers = request.raw.headers;
    this.id = request.id;
    this.params = request.params as Record<string, string>;
    this.query = request.query as Record<string, unknown>;
    this.nowMs = nowMs;
    this.#route = route;
  }

  /** The path and the query as they arrived. */
  get target(): string {
    return this.request.url ?? "";
  }

  get lastEventId(): string | undefined {
    const given = this.headers["last-event-id"];
    return typeof given === "string" ? given : undefined;
  }

  /** Sends 304 to a client that has the tag. */
  answerNotModified(etag: string): void {
    this.#begin(304, ["ETag", etag]);
    this.response.end();
  }

  /** Sends JSON in UTF-8 with its tag. The bytes are not copied, so that responses can share them. */
  answerBytes(
    etag: string,
    { parts, length }: { parts: readonly Buffer[]; length: number },
    contentCoding?: string,
  ): void {
    const coding = contentCoding === undefined ? none : ["Content-Encoding", contentCoding];
    const tagged = ["ETag", etag, "Content-Length", String(length), "Content-Type", jsonType];
    this.#begin(200, [...tagged, ...coding]);
    writeInTurns(this.response, parts);
  }

  /** Sends a body, given as a string of its bytes, with its tag; or 304 if the client has the tag. */
  answerTagged(etag: string, body: string | (() => string)): void {
    const ifNoneMatch = this.headers["if-none-match"];
    if (ifNoneMatch !== undefined && namesTag(ifNoneMatch, etag)) {
      this.answerNotModified(etag);
      return;
    }
    const text = typeof body === "string" ? body : body();
    const length = String(text.length);
    this.#begin(200, ["ETag", etag, "Content-Length", length, "Content-Type", jsonType]);
    // Node.js joins the head and a string to one string. For a long body, two strings in one write take less time.
    if (text.length >= longBodyBytes) {
      this.response.cork();
      this.response.flushHeaders();
    }
    this.response.end(text, "latin1");
  }

  /** Sends JSON. */
  answerJson(status: number, body: string): void {
    const length = Buffer.byteLength(body);
    this.#begin(status, ["Content-Type", jsonType, "Content-Length", String(length)]);
    // Node encodes ASCII in half the time as Latin-1 (`npm run bench -- targeting`, one flag by OFREP).
    this.response.end(body, length === body.length ? "latin1" : "utf8");
  }

  /** Sends JSON in UTF-8, given as a string of its bytes. */
  answerByteString(body: string): void {
    this.#begin(200, ["Content-Type", jsonType, "Content-Length", String(body.length)]);
    this.response.end(body, "latin1");
  }

  /** Sends bytes, which are not copied. */
  answerBinary(bytes: Buffer): void {
    this.#begin(200, [
      ...["Content-Type", "application/octet-stream"],
      ...["Content-Length", String(bytes.length)],
    ]);
    this.response.end(bytes);
  }

  /** Sends the head of a stream. The end of the connection ends the body. */
  beginStream(): void {
    // Without chunked encoding, the bytes of an event are the same for all streams.
    this.response.removeHeader("transfer-encoding");
    this.#begin(200, ["Content-Type", "text/event-stream"], streamHeaders);
  }

  /** Writes the head of a response: the id of the request, its own headers, and those of every response. */
  #begin(status: number, own: readonly string[], common = commonHeaders): void {
    const { cacheHeaders, name, counts } = this.#route;
    // Only successful responses have headers about caching.
    this.response.writeHead(status, [
      "X-Request-Id",
      this.id,
      ...own,
      ...(status < 400 ? cacheHeaders : none),
      ...common,
      ...this.rateLimit.headers,
    ]);
    counts.count(name, status);
  }

  /** Sends an error response, which web pages of any origin can read. */
  reject(problem: Problem): void {
    const { name, counts } = this.#route;
    const named = { "X-Request-Id": this.id, ...commonHeadersByName };
    // This problem contains the fields of the limit that was reached. Those of the other limits are added.
    if (problem.rejected === "RATE_001")
      writeProblem(this.response, nameFurtherLimits(problem, this.rateLimit.members), named);
    else writeProblem(this.response, problem, { ...named, ...byName(this.rateLimit.headers) });
    counts.count(name, this.response.statusCode);
  }

  /**
   * Runs a part of the response. The framework does not handle errors of the hot path, and a later part runs in
   * a timer or in the request of another client. So an error ends this response here: with 500, or by closing the
   * connection if the head has been sent.
   */
  guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.fail(error);
    }
  }

  fail(error: unknown): void {
    const { name, failureLog } = this.#route;
    const { method } = this.request;
    failureLog.error({ request_id: this.id, endpoint: name, method, err: error }, "request failed");
    if (this.response.headersSent) this.response.destroy();
    else this.reject(ourFault);
  }
}

/**
 * Writes parts one after another, as the client reads them, and ends the response. Given all of a long body, libuv would
 * write as long as the client reads, tens of megabytes in one turn of the event loop.
 */
function writeInTurns(response: ServerResponse, parts: readonly Buffer[]): void {
  response.cork();
  const last = parts.findIndex((part) => !response.write(part));
  const rest = last === -1 ? [] : parts.slice(last + 1);
  if (rest.length === 0) response.end();
  else response.once("drain", () => writeInTurns(response, rest));
  response.uncork();
}

const none: readonly string[] = [];

/**
 * Joining costs a tenth of a response of 37 KB (`npm run bench -- targeting`, 1,000 flags), and saves time at 10 KB.
 */
const longBodyBytes = 32 * 1024;

const jsonType = "application/json; charset=utf-8";
const ourFault = createProblem("SERVER_001", "Something went wrong on our side");

const commonHeadersByName = { ...anyOriginHeaders, "X-Content-Type-Options": "nosniff" };
const commonHeaders: readonly string[] = Object.entries(commonHeadersByName).flat();

const streamHeaders: readonly string[] = [
  "X-Accel-Buffering",
  "no",
  "Connection",
  "close",
  ...commonHeaders,
];

function byName(headers: readonly string[]): Record<string, string> {
  const named: Record<string, string> = {};
  for (let at = 0; at < headers.length; at += 2)
    named[headers[at] as string] = headers[at + 1] as string;
  return named;
}

/** Maximum size of a body: the context of a user. */
export const bodyLimitBytes = 64 * 1024;

function readBody(exchange: SdkExchange, use: (exchange: SdkExchange) => void): void {
  readJsonBody(exchange.request, bodyLimitBytes, (reading) =>
    exchange.guarded(() => {
      if (isProblem(reading)) {
        exchange.reject(reading);
        return;
      }
      exchange.body = reading.body;
      use(exchange);
    }),
  );
}

/**
 * Reads a JSON body that the headers announce. The framework's parser would cost a tenth of the response to a POST
 * (`npm run bench -- targeting`). This one accepts and rejects the same bodies, including those of GET.
 *
 * It calls `done` once, or never if the client aborts the request. Node discards unread bytes after the response is
 * sent.
 */
export function readJsonBody(
  request: IncomingMessage,
  limitBytes: number,
  done: (reading: BodyReading) => void,
): void {
  const { headers } = request;
  const length = headers["content-length"];
  const isJson = isJsonType(headers["content-type"] ?? "");
  if (!isJson && length !== undefined) done(notJson);
  // Only the end of a chunked body shows whether it is empty.
  else if (!isJson)
    collect(request, 0, (bytes) => done(bytes === undefined ? notJson : { body: undefined }));
  else if (length !== undefined && Number(length) > limitBytes) done(bodyTooLarge);
  else
    collect(request, limitBytes, (bytes) =>
      done(bytes === undefined ? bodyTooLarge : parseJsonBody(headers, bytes)),
    );
}

/** Returns whether the headers announce a body, which may be empty. */
function announcesBody({ headers }: IncomingMessage): boolean {
  const length = headers["content-length"];
  return (length !== undefined && length !== "0") || headers["transfer-encoding"] !== undefined;
}

/** Calls `done` with all bytes, or with undefined if they exceed the limit. */
function collect(
  request: IncomingMessage,
  limitBytes: number,
  done: (bytes: Buffer | undefined) => void,
): void {
  const chunks: Buffer[] = [];
  let received = 0;
  let isOver = false;
  request.on("data", (chunk: Buffer) => {
    if (isOver) return;
    received += chunk.length;
    chunks.push(chunk);
    if (received <= limitBytes) return;
    isOver = true;
    done(undefined);
  });
  request.on("end", () => {
    if (!isOver) done(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, received));
  });
  // An aborted request also fails its stream. The server has handled it already.
  request.on("error", () => undefined);
}
