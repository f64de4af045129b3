import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { DirectoryKey } from "@halyard/api-keys";
import type { UsageEndpoint } from "@halyard/contracts";
import {
  anyOriginHeaders,
  createProblem,
  type Logger,
  namesTag,
  type Problem,
  writeProblem,
} from "@halyard/service";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type LimitFields, nameFurtherLimits, noLimitFields } from "../limits/limits.ts";
import type { AnswerCounts } from "./answer-counts.ts";

/** The parts of a route that its answers need. */
export type AnsweringRoute = {
  /** Name in metrics, in logs and in counted usage. */
  readonly name: UsageEndpoint;
  /** `Cache-Control` and `Vary`: names and values in turn. */
  readonly cacheHeaders: readonly string[];
  readonly counts: AnswerCounts;
  readonly logger: Logger;
};

/**
 * A request of an SDK and its response. Responses are written to Node's response after `reply.hijack()`. The framework
 * would take longer to send a response than all other work of the request takes (`npm run bench -- flags`).
 */
export class Exchange {
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
  /** Set when the limits of the key are known. */
  rateLimit: LimitFields = noLimitFields;
  /** The parsed JSON body. */
  body: unknown = undefined;
  readonly #route: AnsweringRoute;

  constructor(route: AnsweringRoute, request: FastifyRequest, reply: FastifyReply, nowMs: number) {
    this.request = request.raw;
    this.response = reply.raw;
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
    const { cacheHeaders, name, counts } = this.#route;
    this.response.writeHead(304, [
      "X-Request-Id",
      this.id,
      "ETag",
      etag,
      ...cacheHeaders,
      ...commonHeaders,
      ...this.rateLimit.headers,
    ]);
    this.response.end();
    counts.count(name, 304);
  }

  /** Sends JSON in UTF-8 with its tag. The bytes are not copied, so that responses can share them. */
  answerBytes(
    etag: string,
    { parts, length }: { parts: readonly Buffer[]; length: number },
    contentCoding?: string,
  ): void {
    const { response } = this;
    const { cacheHeaders, name, counts } = this.#route;
    response.writeHead(200, [
      "X-Request-Id",
      this.id,
      "ETag",
      etag,
      "Content-Length",
      String(length),
      "Content-Type",
      jsonType,
      ...(contentCoding === undefined ? none : ["Content-Encoding", contentCoding]),
      ...cacheHeaders,
      ...commonHeaders,
      ...this.rateLimit.headers,
    ]);
    response.cork();
    for (const part of parts) response.write(part);
    response.end();
    counts.count(name, 200);
  }

  /** Sends a body in ASCII with its tag, or 304 if the client has the tag. */
  answerTagged(etag: string, body: string | (() => string)): void {
    const { response } = this;
    const { cacheHeaders, name, counts } = this.#route;
    const ifNoneMatch = this.headers["if-none-match"];
    if (ifNoneMatch !== undefined && namesTag(ifNoneMatch, etag)) {
      this.answerNotModified(etag);
      return;
    }
    const text = typeof body === "string" ? body : body();
    response.writeHead(200, [
      "X-Request-Id",
      this.id,
      "ETag",
      etag,
      "Content-Length",
      String(text.length),
      "Content-Type",
      jsonType,
      ...cacheHeaders,
      ...commonHeaders,
      ...this.rateLimit.headers,
    ]);
    // Node.js joins the head and a string to one string. For a long body, two strings in one write take less time.
    if (text.length >= longBodyBytes) {
      response.cork();
      response.flushHeaders();
    }
    response.end(text, "latin1");
    counts.count(name, 200);
  }

  /** Sends JSON. Only successful responses have headers about caching. */
  answerJson(status: number, body: string): void {
    const { cacheHeaders, name, counts } = this.#route;
    const length = Buffer.byteLength(body);
    this.response.writeHead(status, [
      "X-Request-Id",
      this.id,
      "Content-Type",
      jsonType,
      "Content-Length",
      String(length),
      ...(status === 200 ? cacheHeaders : none),
      ...commonHeaders,
      ...this.rateLimit.headers,
    ]);
    // Node encodes ASCII in half the time as Latin-1 (`npm run bench -- targeting`, one flag by OFREP).
    this.response.end(body, length === body.length ? "latin1" : "utf8");
    counts.count(name, status);
  }

  /** Sends the head of a stream. The end of the connection ends the body. */
  beginStream(): void {
    const { cacheHeaders, name, counts } = this.#route;
    // Without chunked encoding, the bytes of an event are the same for all streams.
    this.response.removeHeader("transfer-encoding");
    const head = ["X-Request-Id", this.id, "Content-Type", "text/event-stream"];
    this.response.writeHead(200, [
      ...head,
      ...cacheHeaders,
      ...streamHeaders,
      ...this.rateLimit.headers,
    ]);
    counts.count(name, 200);
  }

  /** Sends an error response, which web pages of any origin can read. */
  reject(problem: Problem): void {
    const { name, counts } = this.#route;
    const named = { "X-Request-Id": this.id, ...commonHeadersByName };
    // The problem of a limit has fields of its own, to which those of the other limits are added.
    if (problem.rejected === "RATE_001")
      writeProblem(this.response, nameFurtherLimits(problem, this.rateLimit.members), named);
    else writeProblem(this.response, problem, { ...named, ...byName(this.rateLimit.headers) });
    counts.count(name, this.response.statusCode);
  }

  /**
   * Runs a part of the response. The framework does not handle errors after `reply.hijack()`, and a later part runs in
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
    const { name, logger } = this.#route;
    logger.error({ endpoint: name, method: this.request.method, err: error }, "request failed");
    if (this.response.headersSent) this.response.destroy();
    else this.reject(ourFault);
  }
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
