import { uploadTimeoutMs } from "@halyard/contracts";
import { type App, createApp, escapeMalformedPath, isOpenToAllOrigins } from "@halyard/http";
import { createTrustedPeers, type Logger, type Metrics } from "@halyard/service";
import type { FastifyRequest } from "fastify";
import { createProxy } from "./proxy.ts";
import { mapTargets, routeTable, type Target } from "./route-table.ts";
import { createUpstreams } from "./upstreams.ts";

type GatewayOptions = {
  logger: Logger;
  metrics: Metrics;
  trustedProxies: readonly string[];
  upstreams: Readonly<Record<Target, readonly URL[]>>;
  /** Address at which browsers open the installation. */
  publicUrl?: string | undefined;
  /** Replaces the time limit of every service, for tests. */
  answerWithinMs?: number;
};

export type Gateway = { app: App; drain: () => Promise<void>; close: () => Promise<void> };

/**
 * Maximum silence of a service before its response begins. A service that is silent for longer is stuck. Services with
 * a database report after 20 s that PostgreSQL is unavailable. Webhook dispatchers wait up to 30 s for the target of a
 * test. Edges respond from memory; a request waits there for at most 10 s.
 */
const answerWithinMs: Readonly<Record<Target, number>> = {
  management: 25_000,
  scheduler: 25_000,
  "usage-metering": 25_000,
  "webhook-dispatcher": 40_000,
  "sdk-edge": 12_000,
  dashboard: 10_000,
};

/**
 * Creates the built-in proxy of `npm start`, which forwards each path of the route table to its service. It is made for
 * trying and developing; an installation uses HAProxy or its own ingress.
 */
export function createGateway(options: GatewayOptions): Gateway {
  const { logger, trustedProxies } = options;
  const app = createApp({
    ...{ logger, metrics: options.metrics, trustedProxies },
    bodyLimitBytes: 1,
    streamTimeoutMs: uploadTimeoutMs,
    requestLog: false,
    // Edges answer paths that cannot be decoded.
    rewriteTarget: (target) => (isOpenToAllOrigins(target) ? escapeMalformedPath(target) : target),
  });
  const proxy = createProxy({ logger, isTrustedPeer: createTrustedPeers(trustedProxies) });
  const forwards = mapTargets((target) =>
    proxy.createForward({
      upstreams: createUpstreams(options.upstreams[target]),
      answerWithinMs: options.answerWithinMs ?? answerWithinMs[target],
    }),
  );
  for (const { pattern, target } of routeTable) {
    const forward = forwards[target];
    app.all(pattern, {
      // Runs before the body is read, and never calls `done`, so that Fastify does not handle the request.
      onRequest: (request, reply, _done) => {
        const page = target === "dashboard" ? pageAtName(request, options.publicUrl) : undefined;
        if (page === undefined) forward(request, reply);
        else reply.redirect(page, temporaryRedirect);
      },
      handler: () => undefined,
    });
  }
  return { app, drain: proxy.drain, close: proxy.close };
}

const temporaryRedirect = 307;

/**
 * Returns where to load a page that was requested at 127.0.0.1, if browsers open the installation at `localhost`. Cookies
 * and passkeys belong to the name. Requests of programs stay, because not all of them follow redirects.
 */
function pageAtName({ method, headers, url }: FastifyRequest, publicUrl = ""): string | undefined {
  const { hostname, origin } = URL.parse(publicUrl) ?? {};
  const isPage = method === "GET" && headers.accept?.includes("text/html") === true;
  const isByAddress = /^127\.0\.0\.1(?::\d+)?$/.test(headers.host ?? "");
  return hostname === "localhost" && isPage && isByAddress ? `${origin}${url}` : undefined;
}
