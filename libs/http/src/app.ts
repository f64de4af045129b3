import { isTracing } from "@halyard/tracing";
import {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  fastify,
  LogController,
} from "fastify";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import { decorateWithSettings } from "./app-settings.ts";
import { boundBodies, defaultBodyTimeoutMs } from "./body-timeout.ts";
import {
  answerError,
  type IsOutage,
  noSuchRoute,
  sendProblem,
  setCommonHeaders,
} from "./error-answers.ts";
import { acceptJsonBodies } from "./json-body.ts";
import { limitErrorLines, limitFailureLines } from "./limit-error-lines.ts";
import { answerClientError, answerOddRequests, rejectMalformed } from "./malformed-http.ts";
import { boundPipelining } from "./pipelining.ts";
import { requestDurations } from "./request-durations.ts";
import { createRequestIds } from "./request-id.ts";
import { createRequestLogger } from "./request-logger.ts";
import { logRejected, recordRequests, recordUnmatched } from "./request-record.ts";
import { traceRequests } from "./request-spans.ts";
import { pathAndQueryOf } from "./request-target.ts";

export type App = FastifyInstance;

declare module "fastify" {
  interface FastifyContextConfig {
    /** `false` keeps a route out of the histogram, and its successful responses out of the request log. */
    measured?: boolean;
    /** The route calls `rejectMalformed` and writes its responses itself, without the common headers. */
    hijacked?: boolean;
  }
}

export type AppOptions = {
  logger: Logger;
  bodyLimitBytes: number;
  maxHeaderBytes?: number;
  /** Time after which a connection without a complete request header is closed. For tests. */
  headersTimeoutMs?: number;
  /** Time in which the body of an admitted request with `streamedBody` must arrive. By default, that of other bodies. */
  streamTimeoutMs?: number;
  /** Time to receive one request. A slower client is stuck, or holds connections on purpose. For tests. */
  bodyTimeoutMs?: number;
  /** Addresses or CIDR ranges whose `X-Forwarded-For` counts. */
  trustedProxies: readonly string[];
  metrics: Registry;
  /** One log line per request, on by default. Error responses are always logged. */
  requestLog?: boolean;
  /**
   * Checks each response against the contract of its route, and throws if they differ. On by default, for tests and
   * development. Production switches it off, because a check costs as much as a response.
   */
  checkAnswers?: boolean;
  /** Changes the path and query of a request before it is routed. */
  rewriteTarget?: (target: string) => string;
  /**
   * Returns whether an error is an outage of a dependency instead of a bug. Outages return 503, so that the client
   * retries.
   */
  isOutage?: IsOutage;
};

/** Room for a user context of 16 KiB in a header, beside the headers of browsers and proxies. */
const defaultMaxHeaderBytes = 32 * 1024;

/** Time to receive the headers. A slower client is gone, or holds connections on purpose. */
const defaultHeadersTimeoutMs = 20_000;

/** Node checks for timed-out requests at intervals, so a time-out is at most a quarter late. */
const checksPerHeadersTimeout = 4;

/** Longer than the 60 s after which common load balancers close an idle connection. */
const keepAliveTimeoutMs = 72_000;

/**
 * Creates the HTTP application that every service extends. It returns every failure in the same error shape and accepts
 * only JSON. It keeps the cost of a request low: a request has no logger until something is logged, and only the hooks
 * that affect its route.
 */
export function createApp(options: AppOptions): App {
  const requestIds = createRequestIds();
  const { logger, rewriteTarget = (target) => target, requestLog = true } = options;
  const { bodyTimeoutMs = defaultBodyTimeoutMs } = options;
  const requestLines = limitErrorLines(logger);
  const malformed = { logger: requestLines, makeRequestId: requestIds };
  const headersTimeout = options.headersTimeoutMs ?? defaultHeadersTimeoutMs;
  const app: App = fastify({
    bodyLimit: options.bodyLimitBytes,
    // Adds `HEAD` to each `GET` route. Routes with a contract register it themselves.
    exposeHeadRoutes: true,
    http: {
      maxHeaderSize: options.maxHeaderBytes ?? defaultMaxHeaderBytes,
      // Otherwise Node itself rejects a request without Host, without a body. `onRequest` rejects it instead.
      requireHostHeader: false,
      headersTimeout,
      connectionsCheckingInterval: headersTimeout / checksPerHeadersTimeout,
    },
    requestTimeout: options.streamTimeoutMs ?? bodyTimeoutMs,
    keepAliveTimeout: keepAliveTimeoutMs,
    forceCloseConnections: "idle",
    // While it drains, the app still serves requests, and each response closes its connection.
    return503OnClosing: false,
    trustProxy: options.trustedProxies.length === 0 ? false : [...options.trustedProxies],
    logController: new LogController({
      disableRequestLogging: true,
      requestIdLogLabel: "request_id",
    }),
    genReqId: requestIds,
    rewriteUrl: ({ url = "" }) => rewriteTarget(pathAndQueryOf(url)),
    // The framework checks each logger from a factory, which costs an edge 1 % of a response.
    ...(requestLog && {
      childLoggerFactory: (_none, bindings) => createRequestLogger(logger, bindings),
    }),
    clientErrorHandler: (error, socket) => answerClientError(error, socket, malformed),
    // A path that cannot be decoded, or has a parameter that is too long, matches no route.
    frameworkErrors: (_error, request, reply) => {
      setCommonHeaders(request, reply);
      sendProblem(reply, noSuchRoute);
      logRejected(requestLines, {
        requestId: request.id,
        target: request.raw.url,
        status: reply.statusCode,
      });
    },
  });
  decorateWithSettings(app, {
    checkAnswers: options.checkAnswers ?? true,
    failureLog: limitFailureLines(logger),
  });
  acceptJsonBodies(app);
  answerOddRequests(app.server, malformed);
  boundPipelining(app.server);
  if (options.streamTimeoutMs !== undefined) boundBodies(app.server, bodyTimeoutMs);
  const durations = requestDurations(options.metrics);
  const recording = { durations, logger: requestLines, requestLog };
  recordRequests(app, recording);
  app.addHook("onRoute", (route) => {
    if (route.config?.hijacked === true) return;
    const present = route.onRequest ?? [];
    route.onRequest = [beginAnswer, ...(Array.isArray(present) ? present : [present])];
  });
  if (isTracing()) traceRequests(app);
  answerFailures(app, { recording, isOutage: options.isOutage });
  return app;
}

type FailureParts = {
  recording: Parameters<typeof recordUnmatched>[0];
  isOutage: IsOutage | undefined;
};

/** Registers the handlers of errors and of requests that match no route. */
function answerFailures(app: App, { recording, isOutage }: FailureParts): void {
  app.setErrorHandler((error, request, reply) => {
    if (request.is404) recordUnmatched(recording, request, reply);
    answerError(error, request, reply, isOutage);
  });
  app.register((unknown, _options, done) => {
    // The framework does not call `onRoute` for this handler.
    unknown.addHook("onRequest", (request, reply, next) => {
      if (rejectMalformed(request, reply)) return recordUnmatched(recording, request, reply);
      setCommonHeaders(request, reply);
      next();
    });
    unknown.setNotFoundHandler((request, reply) => {
      recordUnmatched(recording, request, reply);
      sendProblem(reply, noSuchRoute);
    });
    done();
  });
}

/** Rejects malformed requests, and sets the common headers of all other responses. */
function beginAnswer(request: FastifyRequest, reply: FastifyReply, next: () => void): void {
  if (rejectMalformed(request, reply)) return;
  setCommonHeaders(request, reply);
  next();
}
