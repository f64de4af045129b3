import { keyProblems } from "@halyard/api-keys";
import {
  cacheHeadersOf,
  isEventStream,
  type RouteContract,
  type UsageEndpoint,
} from "@halyard/contracts";
import {
  type App,
  announcesBody,
  createProblem,
  isProblem,
  isWellEncoded,
  type Logger,
  type Problem,
  readJsonBody,
  rejectMalformed,
} from "@halyard/service";
import type { FastifyReply, FastifyRequest, HTTPMethods } from "fastify";
import type { Limits } from "../limits/limits.ts";
import type { SnapshotHolder } from "../snapshot/snapshot-holder.ts";
import type { Usage } from "../usage/usage.ts";
import type { AnswerCounts } from "./answer-counts.ts";
import { type Authenticate, unknownKey } from "./authentication.ts";
import { Exchange, type FreeEndpoint } from "./exchange.ts";

/** Maximum size of a body: the context of a user. */
export const bodyLimitBytes = 64 * 1024;

/** Parts that all routes of an edge share. */
export type RouteParts = {
  holder: SnapshotHolder;
  counts: AnswerCounts;
  limits: Limits;
  /** Undefined: requests are not counted and not limited by plan. */
  usage: Usage | undefined;
  isKeyLive: (keyId: string, nowMs: number) => boolean;
  isDraining: () => boolean;
  logger: Logger;
  now: () => number;
};

export type EdgeRoute = {
  contract: Omit<RouteContract, "params" | "query" | "body">;
  authenticate: Authenticate;
  /** Responds to an authenticated request, possibly later. */
  respond: (exchange: Exchange) => void;
} & (CountedEndpoint | { name: FreeEndpoint; isFree: true });

type CountedEndpoint = {
  /** Name in metrics, in logs and in counted usage. */
  name: UsageEndpoint;
  isFree?: undefined;
  /** The route counts its requests itself, because its own limit may reject them. */
  countsItself?: true;
};

/**
 * Registers the route of a contract. The order of the checks is that of `registerRoute` in libs/service: key (401; 429
 * for an address that sends too many invalid ones), limits (429), kind of key (403), body (413, 415, 400). Then the
 * route checks the rest of its input. A request within the limits counts as used, even if it is rejected later.
 */
export function registerEdgeRoute(app: App, route: EdgeRoute, parts: RouteParts): void {
  const { contract, name } = route;
  const isStream = isEventStream(contract);
  const methods: HTTPMethods[] = [contract.method];
  // A stream has no HEAD, which would return no events.
  if (contract.method === "GET" && !isStream) methods.push("HEAD");
  const cacheHeaders = Object.entries(cacheHeadersOf(contract as RouteContract)).flat();
  const { limits } = parts;
  const answering = { name, cacheHeaders, counts: parts.counts, logger: parts.logger };

  function onRequest(request: FastifyRequest, reply: FastifyReply, _next: () => void): void {
    if (rejectMalformed(request, reply)) return;
    reply.hijack();
    const exchange = new Exchange(answering, request, reply, parts.now());
    try {
      const problem = admit(route, exchange, parts);
      if (problem !== undefined) {
        const isInvalidKey = problem.rejected === "AUTH_001";
        const tooMany = isInvalidKey ? limits.invalidKey(request.ip, exchange.nowMs) : undefined;
        exchange.reject(tooMany ?? problem);
      } else if (isStream || !announcesBody(request.raw)) route.respond(exchange);
      else readBody(exchange);
    } catch (error) {
      exchange.fail(error);
    }
  }

  function readBody(exchange: Exchange): void {
    readJsonBody(exchange.request, bodyLimitBytes, (reading) =>
      exchange.guarded(() => {
        if (isProblem(reading)) {
          exchange.reject(reading);
          return;
        }
        exchange.body = reading.body;
        // The key may have ended while the body arrived.
        if (parts.isKeyLive(exchange.key.id, parts.now())) route.respond(exchange);
        else exchange.reject(unknownKey);
      }),
    );
  }

  app.route({
    method: methods,
    // The parameter at the end can contain slashes.
    url: contract.path.replace(/:\w+$/, "*"),
    exposeHeadRoute: false,
    config: { measured: false, hijacked: true },
    // The framework reads the body before it calls the handler, which costs too much; see `readJsonBody`.
    onRequest,
    handler: () => undefined,
  });
}

/** Authenticates a request and applies its limits. Returns the error for a rejected request. */
function admit(route: EdgeRoute, exchange: Exchange, parts: RouteParts): Problem | undefined {
  const { limits, usage } = parts;
  const { nowMs } = exchange;
  const isStarting = parts.holder.snapshot === undefined;
  // Otherwise the next request on this connection would reach this edge again, instead of one that is ready.
  if (isStarting || parts.isDraining()) exchange.response.setHeader("Connection", "close");
  if (isStarting) return nothingReceived;
  const key = route.authenticate(exchange);
  if (isProblem(key)) return key;
  const overLimit = route.isFree ? limits.checkRate(key, nowMs) : limits.check(key, nowMs);
  if (overLimit !== undefined) return overLimit;
  const isForbidden = route.contract.access === "server_key" && key.kind !== "server";
  if (route.isFree) usage?.used(key, nowMs);
  else if (route.countsItself === undefined || isForbidden) usage?.count(key, route.name, nowMs);
  exchange.key = key;
  exchange.rateLimit = limits.fields(key, nowMs);
  return isForbidden ? keyProblems.notServer : undefined;
}

const nothingReceived = createProblem(
  "SERVER_002",
  "This edge has not received the flags yet; try again",
);

/**
 * Escapes the percent signs of a path that is not well encoded, which the router would reject before authentication.
 * OFREP answers it like any other unknown flag.
 */
export function escapeMalformedPath(target: string): string {
  if (!target.includes("%")) return target;
  const [path = "", ...query] = target.split("?");
  if (isWellEncoded(path)) return target;
  return [path.replaceAll("%", "%25"), ...query].join("?");
}
