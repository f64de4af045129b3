import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { lowestErrorStatus, type RequestLog } from "./limit-error-lines.ts";
import type { RequestDurations } from "./request-durations.ts";
import { traceFieldsOf } from "./request-spans.ts";
import { pathOf } from "./request-target.ts";

/** Label of requests that match no route. Their paths are no labels, because clients choose them. */
const unmatchedRoute = "unmatched";

const millisecondsPerSecond = 1_000;

type RecordOptions = {
  durations: RequestDurations;
  logger: RequestLog;
  /** Logs every response. Error responses are logged in any case, so that a client's `X-Request-Id` leads to a line. */
  requestLog: boolean;
};

type Facts = { route: string; isMeasured: boolean; request: FastifyRequest; reply: FastifyReply };

function record({ durations, logger, requestLog }: RecordOptions, facts: Facts): void {
  const { route, isMeasured, request, reply } = facts;
  const status = reply.raw.statusCode;
  if (isMeasured) {
    const method = route === unmatchedRoute ? "any" : request.method;
    durations.observe({ method, route, status }, reply.elapsedTime / millisecondsPerSecond);
  }
  if (status < lowestErrorStatus && !(requestLog && isMeasured)) return;
  const line = {
    request_id: request.id,
    method: request.method,
    path: pathOf(request.raw.url ?? ""),
    status,
    duration_ms: Math.round(reply.elapsedTime * 1_000) / 1_000,
    ...traceFieldsOf(request),
  };
  logger.info(line, "request");
}

/** Logs an error response to a request that reached neither a route nor the handler of unknown routes. */
export function logRejected(
  logger: RequestLog,
  { requestId, target, status }: { requestId: string; target?: string | undefined; status: number },
): void {
  const path = target === undefined ? {} : { path: pathOf(target) };
  logger.info({ request_id: requestId, ...path, status }, "request");
}

/**
 * Measures and logs each response. Each route has its own hook with the route's pattern, so that a request costs one
 * call without a closure.
 */
export function recordRequests(app: FastifyInstance, options: RecordOptions): void {
  app.addHook("onRoute", (route) => {
    const isMeasured = route.config?.measured !== false;
    const present = route.onResponse ?? [];
    route.onResponse = [
      ...(Array.isArray(present) ? present : [present]),
      (request, reply, done) => {
        if (isMeasured || reply.raw.statusCode >= lowestErrorStatus)
          record(options, { route: route.url, isMeasured, request, reply });
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
  const facts = { route: unmatchedRoute, isMeasured: true, request, reply };
  reply.raw.once("finish", () => record(options, facts));
}
