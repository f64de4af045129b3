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
import {
  answerError,
  type IsOutage,
  noSuchRoute,
  sendProblem,
  setCommonHeaders,
} from "./error-answers.ts";
import { acceptJsonBodies } from "./json-body.ts";
import { answerClientError, answerOddRequests, rejectMalformed } from "./malformed-http.ts";
import { requestDurations } from "./metrics.ts";
import { createRequestIds } from "./request-id.ts";
import { createRequestLogger } from "./request-logger.ts";
import { recordRequests, recordUnmatched } from "./request-record.ts";
import { pathAndQueryOf } from "./request-target.ts";

export type App = FastifyInstance;

declare module "fastify" {
  interface FastifyContextConfig {
    /** `false` keeps a route out of the histogram and the request log, and saves their cost. */
    measured?: boolean;
    /** The route calls `rejectMalformed` and writes its answers itself, without the headers of every other answer. */
    hijacked?: boolean;
  }
}

export type AppOptions = {
  logger: Logger;
  bodyLimitBytes: number;
  maxHeaderBytes?: number;
  /** Time after which a connection without a complete request header is closed. For tests. */
  headersTimeoutMs?: number;
  /** Addresses or CIDR ranges whose `X-Forwarded-For` counts. */
  trustedProxies: readonly string[];
  metrics: Registry;
  /**
   * One log line per request, on by default. Failures are logged in any case, except what only the framework notices,
   * such as a connection that breaks during an answer.
   */
  requestLog?: boolean;
  /**
   * Checks each answer against its route's contract and fails loudly. On by default, for tests and
   * development; production switches it off, because a check costs as much as an answer.
   */
  checkAnswers?: boolean;
  /** Changes the path and query of a request before it is routed. */
  rewriteTarget?: (target: string) => string;
  /**
   * Tells the failures of a part that is away from faults of the program: they are answered with 503,
   * so that the caller comes back.
   */
  isOutage?: IsOutage;
};

/** A user context of 16 KiB in a header must fit, beside what a browser and proxies add. */
const defaultMaxHeaderBytes = 32 * 1024;

/** A caller that needs longer to send one request is stuck, or holds connections on purpose. */
const requestTimeoutMs = 60_000;

/** A client that has not sent its headers by then holds connections on purpose, or is gone. */
const defaultHeadersTimeoutMs = 20_000;

/** Node looks for requests that exceeded their time in intervals: at most a quarter later. */
const checksPerHeadersTimeout = 4;

/** Longer than the 60 s after which common load balancers drop an idle connection themselves. */
const keepAliveTimeoutMs = 72_000;

/**
 * The HTTP application that every service starts from. It answers every failure in the one error
 * shape, takes JSON only, and knows nothing of flags. Per request it does as little as that needs:
 * no logger is made until something is logged, and a hook only where it has an effect.
 */
export function createApp(options: AppOptions): App {
  const requestIds = createRequestIds();
  const { rewriteTarget = (target) => target, requestLog = true } = options;
  const headersTimeout = options.headersTimeoutMs ?? defaultHeadersTimeoutMs;
  const app: App = fastify({
    bodyLimit: options.bodyLimitBytes,
    // `HEAD` answers what `GET` would, without the body. Routes with a contract register it themselves.
    exposeHeadRoutes: true,
    http: {
      maxHeaderSize: options.maxHeaderBytes ?? defaultMaxHeaderBytes,
      // Node would answer a missing Host by itself and without a body; `onRequest` does it instead.
      requireHostHeader: false,
      headersTimeout,
      connectionsCheckingInterval: headersTimeout / checksPerHeadersTimeout,
    },
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: keepAliveTimeoutMs,
    forceCloseConnections: "idle",
    // While it drains, the app goes on answering; each answer closes its connection.
    return503OnClosing: false,
    trustProxy: options.trustedProxies.length === 0 ? false : [...options.trustedProxies],
    logController: new LogController({
      disableRequestLogging: true,
      requestIdLogLabel: "request_id",
    }),
    genReqId: requestIds,
    rewriteUrl: ({ url = "" }) => rewriteTarget(pathAndQueryOf(url)),
    // The framework checks each logger from a factory, which costs an edge 1 % of an answer.
    ...(requestLog && {
      childLoggerFactory: (_none, bindings) => createRequestLogger(options.logger, bindings),
    }),
    clientErrorHandler: (error, socket) => answerClientError(error, socket, requestIds),
    // A path that cannot be decoded, or with a part that is too long, names nothing.
    frameworkErrors: (_error, request, reply) => {
      setCommonHeaders(request, reply);
      sendProblem(reply, noSuchRoute);
    },
  });
  decorateWithSettings(app, {
    checkAnswers: options.checkAnswers ?? true,
    logger: options.logger,
  });
  acceptJsonBodies(app);
  answerOddRequests(app.server, requestIds);
  const recording = { durations: requestDurations(options.metrics), requestLog };
  recordRequests(app, recording);
  app.addHook("onRoute", (route) => {
    if (route.config?.hijacked === true) return;
    const present = route.onRequest ?? [];
    route.onRequest = [beginAnswer, ...(Array.isArray(present) ? present : [present])];
  });
  app.setErrorHandler((error, request, reply) => {
    answerError(error, request, reply, options.isOutage);
  });
  app.register((unknown, _options, done) => {
    // The framework does not announce this handler by `onRoute`.
    unknown.addHook("onRequest", beginAnswer);
    unknown.setNotFoundHandler((request, reply) => {
      recordUnmatched(recording, request, reply);
      sendProblem(reply, noSuchRoute);
    });
    done();
  });
  return app;
}

/** Rejects malformed requests, and sets the headers of every other answer. */
function beginAnswer(request: FastifyRequest, reply: FastifyReply, next: () => void): void {
  if (rejectMalformed(request, reply)) return;
  setCommonHeaders(request, reply);
  next();
}
