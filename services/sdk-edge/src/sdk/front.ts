import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import {
  type App,
  announcesBody,
  createRequestIds,
  isOpenToAllOrigins,
  isRefusal,
  type Logger,
  pathAndQueryOf,
  type Refusal,
  readJsonBody,
  refusalOfHeaders,
  refuse,
} from "@halyard/service";
import { answerPreflight, isPreflight } from "./cors.ts";
import { type Asked, answerRefusal, type Endpoint } from "./endpoint.ts";
import { createEndpointTable } from "./endpoint-table.ts";
import type { SdkParts } from "./sdk-parts.ts";

/**
 * Stands before the framework and answers everything that SDKs may ask for. In this order: who is asking
 * (401, or 429 where too many wrong keys come from one address), whether that key asks too often or its
 * organization has used up its month (429), whether the body can be read (413, 415, 400), and then the
 * endpoint, which looks at query, headers and body. What gets past the limits counts as a request of the
 * month, whatever becomes of it. What is no endpoint goes on to the framework, which knows all the ways
 * to refuse a request.
 */
export function putInFront(app: App, endpoints: readonly Endpoint[], parts: SdkParts): void {
  const front = createFront(endpoints, parts, (request, response) =>
    app.routing(request, response),
  );
  app.server.removeAllListeners("request");
  app.server.on("request", front);
}

/** The longest body that an SDK sends: a user's context. */
export const bodyLimitBytes = 64 * 1024;

function createFront(
  endpoints: readonly Endpoint[],
  parts: SdkParts,
  onward: RequestListener,
): RequestListener {
  const find = createEndpointTable(endpoints);
  const requestId = createRequestIds();
  return (request, response) => {
    request.url = pathAndQueryOf(request.url ?? "");
    const found = find(request);
    // The framework answers requests without an endpoint, and those with headers that it rejects.
    if (found === undefined || refusalOfHeaders(request) !== undefined) {
      passOn(request, response, onward, parts);
      return;
    }
    if (parts.isDraining()) response.setHeader("Connection", "close");
    const { endpoint, query } = found;
    const id = requestId(request);
    const nowMs = parts.now();
    admit(endpoint, { request, response, id, query, nowMs, rateLimit: none }, parts);
  };
}

function passOn(
  request: IncomingMessage,
  response: ServerResponse,
  onward: RequestListener,
  { isDraining }: SdkParts,
): void {
  if (isOpenToAllOrigins(request.url ?? "") && isPreflight(request)) {
    answerPreflight(request, response);
    return;
  }
  if (isDraining()) response.setHeader("Connection", "close");
  onward(request, response);
}

const none: readonly string[] = [];

/** A request of which it is not known yet whose it is, and how much that one has left. */
type Unknown = Asked & { rateLimit: readonly string[] };

function admit(endpoint: Endpoint, asked: Unknown, parts: SdkParts): void {
  const refused = (refusal: Refusal) => {
    answerRefusal(asked, refusal);
    parts.counts.count(endpoint.name, asked.response.statusCode);
  };
  const isStarting = parts.holder.snapshot === undefined;
  // The next request over the same connection would reach this edge again, instead of one that is ready.
  if (isStarting) asked.response.setHeader("Connection", "close");
  const key = isStarting ? nothingReceived : endpoint.authenticate(asked);
  if (isRefusal(key)) {
    const isWrongKey = key.refused === "AUTH_001";
    refused((isWrongKey ? parts.wrongKeys.refuse(asked.request, asked.nowMs) : undefined) ?? key);
    return;
  }
  const overLimit = parts.limits.check(key, asked.nowMs);
  if (overLimit !== undefined) {
    refused(overLimit);
    return;
  }
  if (endpoint.countsItself === undefined) parts.usage?.count(key, endpoint.name, asked.nowMs);
  asked.rateLimit = parts.limits.fields(key, asked.nowMs);
  const guarded = (work: () => void) => {
    try {
      work();
    } catch (error) {
      logFailure(parts.logger, endpoint, error);
      if (asked.response.headersSent) asked.response.destroy();
      else refused(ourFault);
    }
  };
  const respond = (body: unknown) =>
    guarded(() => endpoint.respond({ ...asked, key, body, guarded }));
  if (endpoint.isStream === true || !announcesBody(asked.request)) {
    respond(undefined);
    return;
  }
  readJsonBody(asked.request, bodyLimitBytes, (reading) => {
    if (isRefusal(reading)) refused(reading);
    else respond(reading.body);
  });
}

const nothingReceived = refuse("SERVER_002", "This edge has not received the flags yet; try again");
const ourFault = refuse("SERVER_001", "Something went wrong on our side");

/** A fault of the program ends one answer, not those of every other tenant. */
function logFailure(logger: Logger, { name, method, path }: Endpoint, error: unknown): void {
  logger.error({ endpoint: name, method, path, err: error }, "request failed");
}
