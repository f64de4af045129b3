import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { RequestDurations } from "./request-durations.ts";
import { pathOf } from "./request-target.ts";

/** Label of requests that match no route. Their paths are no labels, because clients choose them. */
const unmatchedRoute = "unmatched";

const millisecondsPerSecond = 1_000;

type RecordOptions = { durations: RequestDurations; requestLog: boolean };

function record(
  options: RecordOptions,
  facts: { route: string; request: FastifyRequest; reply: FastifyReply },
): void {
  const { route, request, reply } = facts;
  const status = reply.raw.statusCode;
  const method = route === unmatchedRoute ? "any" : request.method;
  const seconds = reply.elapsedTime / millisecondsPerSecond;
  options.durations.observe({ method, route, status }, seconds);
  if (!options.requestLog) return;
  const line = {
    method: request.method,
    path: pathOf(request.raw.url ?? ""),
    status,
    duration_ms: Math.round(reply.elapsedTime * 1_000) / 1_000,
  };
  request.log.info(line, "request");
}

/**
 * Measures and logs each response. Each route has its own hook with the route's pattern, so that a request costs one
 * call without a closure, and a route can do without the hook.
 */
export function recordRequests(app: FastifyInstance, options: RecordOptions): void {
  app.addHook("onRoute", (route) => {
    if (route.config?.measured === false) return;
    const present = route.onResponse ?? [];
    route.onResponse = [
      ...(Array.isArray(present) ? present : [present]),
      (request, reply, done) => {
        record(options, { route: route.url, request, reply });
        done();
      },
    ];
  });
}

/** Measures and logs a response to a request that matches no route. */
export function recordUnmatched(
  options: RecordOptions,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  reply.raw.once("finish", () => record(options, { route: unmatchedRoute, request, reply }));
}
