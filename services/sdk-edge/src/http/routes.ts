import type { IncomingMessage } from "node:http";
import { cacheHeadersOf, type RouteContract, type UsageEndpoint } from "@halyard/contracts";
import {
  type App,
  BodyEncodingError,
  isRefusal,
  isWellEncoded,
  type Logger,
  notJson,
  type Refusal,
  refusalOfBody,
  refuse,
} from "@halyard/service";
import type { FastifyReply, FastifyRequest, HTTPMethods } from "fastify";
import type { Limits } from "../limits/limits.ts";
import type { SnapshotHolder } from "../snapshot/snapshot-holder.ts";
import type { Usage } from "../usage/usage.ts";
import type { AnswerCounts } from "./answer-counts.ts";
import type { Authenticate } from "./authentication.ts";
import { Exchange } from "./exchange.ts";
import { answerPreflights } from "./preflight.ts";

/** Maximum size of a body: the context of a user. */
export const bodyLimitBytes = 64 * 1024;

/** Parts that all routes of an edge share. */
export type RouteParts = {
  holder: SnapshotHolder;
  counts: AnswerCounts;
  limits: Limits;
  /** Undefined: nothing is counted, and nothing is limited by plan. */
  usage: Usage | undefined;
  isDraining: () => boolean;
  logger: Logger;
  now: () => number;
};

export type EdgeRoute = {
  contract: Omit<RouteContract, "params" | "query" | "body">;
  /** Name in metrics, in logs and in counted usage. */
  name: UsageEndpoint;
  /** The route counts its requests itself, because its own limit may reject them. */
  countsItself?: true;
  authenticate: Authenticate;
  /** Responds to an authenticated request, possibly later. */
  respond: (exchange: Exchange) => void;
};

const exchangeKey = Symbol("halyard.exchange");
type RequestWithExchange = FastifyRequest & { [exchangeKey]: Exchange };

/** Prepares an app for `registerEdgeRoute`. */
export function prepareForEdgeRoutes(app: App): void {
  app.decorateRequest(exchangeKey, undefined);
  // A body on GET is read as on POST. HEAD is answered like GET.
  app.addHttpMethod("GET", { hasBody: true, overrideExisting: true });
  app.addHttpMethod("HEAD", { hasBody: true, overrideExisting: true });
  app.addContentTypeParser("*", acceptEmptyBody);
  answerPreflights(app);
}

/**
 * Registers a route of its contract. The order of the checks is that of `registerRoute` in libs/service: key (401; 429
 * for an address that sends too many invalid ones), limits (429), body (413, 415, 400), and then the route checks the
 * rest of its input. A request within the limits counts as used, whatever its answer.
 */
export function registerEdgeRoute(app: App, route: EdgeRoute, parts: RouteParts): void {
  const { contract, name } = route;
  const isStream = contract.success.contentType === "text/event-stream";
  const methods: HTTPMethods[] = [contract.method];
  // A stream has only a body.
  if (contract.method === "GET" && !isStream) methods.push("HEAD");
  const cacheHeaders = Object.entries(cacheHeadersOf(contract as RouteContract)).flat();
  const answering = { name, cacheHeaders, counts: parts.counts, logger: parts.logger };

  function onRequest(request: FastifyRequest, reply: FastifyReply, next: () => void): void {
    const exchange = new Exchange(answering, request, reply, parts.now());
    (request as RequestWithExchange)[exchangeKey] = exchange;
    const refusal = admit(route, exchange, parts);
    if (refusal !== undefined) {
      reply.hijack();
      const isInvalidKey = refusal.refused === "AUTH_001";
      const tooMany = isInvalidKey
        ? parts.limits.invalidKey(request.ip, exchange.nowMs)
        : undefined;
      exchange.refuse(tooMany ?? refusal);
    } else if (isStream || !announcesBody(request.raw)) {
      reply.hijack();
      exchange.guarded(() => route.respond(exchange));
    } else next();
  }

  app.route({
    method: methods,
    // The parameter at the end can contain slashes.
    url: contract.path.replace(/:\w+$/, "*"),
    exposeHeadRoute: false,
    config: { measured: false },
    onRequest,
    handler(request, reply) {
      const exchange = (request as RequestWithExchange)[exchangeKey];
      exchange.body = request.body;
      reply.hijack();
      exchange.guarded(() => route.respond(exchange));
    },
    errorHandler(error, request, reply) {
      reply.hijack();
      // The client is gone.
      if (request.raw.readableAborted) return;
      const exchange = (request as RequestWithExchange)[exchangeKey];
      const refusal = refusalOfBody(error);
      if (refusal === undefined) exchange.fail(error);
      else exchange.refuse(refusal);
    },
  });
}

/** Authenticates a request and applies its limits. Returns the error for a rejected request. */
function admit(route: EdgeRoute, exchange: Exchange, parts: RouteParts): Refusal | undefined {
  const { limits, usage } = parts;
  const { nowMs } = exchange;
  const isStarting = parts.holder.snapshot === undefined;
  // The next request on the same connection would reach this edge again, instead of one that is ready.
  if (isStarting || parts.isDraining()) exchange.response.setHeader("Connection", "close");
  if (isStarting) return nothingReceived;
  const key = route.authenticate(exchange);
  if (isRefusal(key)) return key;
  const overLimit = limits.check(key, nowMs);
  if (overLimit !== undefined) return overLimit;
  if (route.countsItself === undefined) usage?.count(key, route.name, nowMs);
  exchange.key = key;
  exchange.rateLimit = limits.fields(key, nowMs);
  return undefined;
}

const nothingReceived = refuse("SERVER_002", "This edge has not received the flags yet; try again");

/** Returns whether the headers announce a body, which may be empty. */
function announcesBody({ headers }: IncomingMessage): boolean {
  const length = headers["content-length"];
  return (length !== undefined && length !== "0") || headers["transfer-encoding"] !== undefined;
}

/** Rejects bodies that are not JSON, except empty ones. Only the end of chunks shows that a body is empty. */
function acceptEmptyBody(
  { headers }: FastifyRequest,
  payload: IncomingMessage,
  done: (error: Error | null, body?: undefined) => void,
): void {
  const rejected = new BodyEncodingError(notJson.message);
  if (headers["content-length"] !== undefined) {
    done(rejected);
    return;
  }
  const onEnd = () => done(null, undefined);
  payload.once("end", onEnd).once("data", () => {
    payload.off("end", onEnd).resume();
    done(rejected);
  });
}

/**
 * Escapes the percent signs of a path that is not well encoded, which the router would reject before authentication.
 * OFREP answers it like any other unknown flag.
 */
export function escapeMalformedPath(target: string): string {
  const [path = "", ...query] = target.split("?");
  if (isWellEncoded(path)) return target;
  return [path.replaceAll("%", "%25"), ...query].join("?");
}
