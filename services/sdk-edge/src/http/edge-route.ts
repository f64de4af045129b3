import { keyProblems } from "@halyard/api-keys";
import { isEventStream, type RouteContract, type UsageEndpoint } from "@halyard/contracts";
import {
  type App,
  appSettings,
  createProblem,
  isProblem,
  type Problem,
  registerRoute,
} from "@halyard/http";
import type { FastifyRequest } from "fastify";
import { type Authenticate, unknownKey } from "./authentication.ts";
import type { EdgeParts } from "./edge-parts.ts";
import { type FreeEndpoint, type SdkExchange, takeRequests } from "./hot-path.ts";
import { edgeIsStopping } from "./take-slot.ts";

export type EdgeRoute = {
  contract: Omit<RouteContract, "params" | "query" | "body">;
  authenticate: Authenticate;
  /** Responds to an authenticated request, possibly later. */
  respond: (exchange: SdkExchange) => void;
} & (CountedEndpoint | { name: FreeEndpoint; isFree: true });

type CountedEndpoint = {
  /** Name in metrics, in logs and in counted usage. */
  name: UsageEndpoint;
  isFree?: undefined;
  /** The route counts its requests itself, because its own limit may reject them. */
  countsItself?: true;
};

/**
 * Registers a route on the hot path. The order of the checks is that of `registerRoute`: key (401; 429 for an address
 * that sends too many invalid ones), limits (429), kind of key (403), body (413, 415, 400). Then the route checks the
 * rest of its input. A request within the limits counts as used, even if it is rejected later.
 */
export function registerEdgeRoute(app: App, route: EdgeRoute, parts: EdgeParts): void {
  const { name, respond } = route;
  const { limits, isKeyLive, now } = parts;
  const contract = route.contract as RouteContract;
  const isStream = isEventStream(contract);

  function admit(exchange: SdkExchange, request: FastifyRequest): Problem | undefined {
    const problem = problemOf(route, exchange, parts);
    if (problem?.rejected !== "AUTH_001") return problem;
    return limits.invalidKey(request.ip, exchange.nowMs) ?? problem;
  }

  function respondToBody(exchange: SdkExchange): void {
    if (isKeyLive(exchange.key.id, now())) respond(exchange);
    else exchange.reject(unknownKey);
  }

  const hotRoute = { contract, name, admit, respond, respondToBody, readsBody: !isStream };
  const { failureLog } = appSettings(app);
  registerRoute(app, contract, { take: takeRequests(hotRoute, { ...parts, failureLog }) });
}

/** Authenticates a request and applies its limits. Returns the error for a rejected request. */
function problemOf(route: EdgeRoute, exchange: SdkExchange, parts: EdgeParts): Problem | undefined {
  const { limits, usage } = parts;
  const { nowMs } = exchange;
  const isStarting = parts.holder.snapshot === undefined;
  const isDraining = parts.isDraining();
  // Otherwise the next request on this connection would reach this edge again, instead of one that is ready.
  if (isStarting || isDraining) exchange.response.setHeader("Connection", "close");
  if (isStarting) return nothingReceived;
  if (isDraining && isEventStream(route.contract)) return edgeIsStopping;
  const key = route.authenticate(exchange);
  if (isProblem(key)) return key;
  const overLimit = limits[limitOf(route)](key, nowMs);
  if (overLimit !== undefined) return overLimit;
  const isForbidden = route.contract.access === "server_or_reader_key" && key.kind === "client";
  if (route.isFree) usage?.used(key, nowMs);
  else if (route.countsItself === undefined || isForbidden) usage?.count(key, route.name, nowMs);
  exchange.key = key;
  exchange.rateLimit = limits.fields(key, nowMs);
  return isForbidden ? keyProblems.client : undefined;
}

/** Returns the name of the limit of a route. The month does not limit free endpoints. */
function limitOf({ name, isFree }: EdgeRoute): "check" | "checkReport" | "checkRate" {
  if (isFree === undefined) return "check";
  return name === "usage" ? "checkReport" : "checkRate";
}

const nothingReceived = createProblem(
  "SERVER_002",
  "This edge has not received the flags yet; try again",
);
