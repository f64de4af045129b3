import type { ServiceName } from "@halyard/contracts";
import {
  type App,
  createApp,
  type Logger,
  type Metrics,
  type ReadReadiness,
} from "@halyard/service";
import { registerDocs } from "./docs-page.ts";
import { createProxy } from "./proxy.ts";
import { routeTable } from "./route-table.ts";
import { createTrustedPeers } from "./trusted-peers.ts";
import { createUpstreams } from "./upstreams.ts";

export type GatewayOptions = {
  logger: Logger;
  metrics: Metrics;
  trustedProxies: readonly string[];
  upstreams: Readonly<Record<ServiceName, readonly URL[]>>;
  /** For tests: instead of what each service is given. */
  answerWithinMs?: number;
};

export type Gateway = {
  app: App;
  readiness: ReadReadiness;
  drain: () => Promise<void>;
  close: () => Promise<void>;
};

/** The gateway reads bodies only of requests that it answers itself, and none of those has one. */
const ownBodyLimitBytes = 1024;

/** Without these a browser hides from a page that the service is only away for a moment. */
const anyOriginHeaders = {
  "access-control-allow-origin": "*",
  "access-control-expose-headers": "ETag, Retry-After, RateLimit, RateLimit-Policy, X-Request-Id",
};

/**
 * How long a service may be silent before its answer begins. All but edges wait for PostgreSQL themselves,
 * and say after 20 s that it is away; webhook dispatchers give the target of a test 30 s. Edges answer from
 * memory, or when they have found out whether there is a slot for a stream. Who is silent for longer is
 * stuck.
 */
const answerWithinMs: Readonly<Record<ServiceName, number>> = {
  management: 25_000,
  scheduler: 25_000,
  "usage-metering": 25_000,
  "webhook-dispatcher": 40_000,
  "sdk-edge": 10_000,
};

/** One base address: what the route table names is passed on, the documentation is served here. */
export async function createGateway(options: GatewayOptions): Promise<Gateway> {
  const { logger, metrics, trustedProxies } = options;
  const app = createApp({
    logger,
    metrics,
    trustedProxies,
    bodyLimitBytes: ownBodyLimitBytes,
    requestLog: false,
  });
  await registerDocs(app);
  const proxy = createProxy();
  const isTrustedPeer = createTrustedPeers(trustedProxies);
  const services = {
    management: createUpstreams(options.upstreams.management),
    scheduler: createUpstreams(options.upstreams.scheduler),
    "sdk-edge": createUpstreams(options.upstreams["sdk-edge"]),
    "usage-metering": createUpstreams(options.upstreams["usage-metering"]),
    "webhook-dispatcher": createUpstreams(options.upstreams["webhook-dispatcher"]),
  };
  for (const { pattern, service, anyOrigin } of routeTable) {
    const forward = proxy.createForward({
      upstreams: services[service],
      isTrustedPeer,
      ownHeaders: anyOrigin ? anyOriginHeaders : {},
      answerWithinMs: options.answerWithinMs ?? answerWithinMs[service],
    });
    app.all(pattern, {
      // Before the body would be read, and without telling the framework to go on.
      onRequest: (request, reply, _done) => forward(request, reply),
      handler: () => undefined,
    });
  }
  return {
    app,
    // Services come and go behind it; the gateway itself can always answer, if only that one is away.
    readiness: () => ({
      ready: true,
      upstreams: {
        management: services.management.origins(),
        scheduler: services.scheduler.origins(),
        "sdk-edge": services["sdk-edge"].origins(),
        "usage-metering": services["usage-metering"].origins(),
        "webhook-dispatcher": services["webhook-dispatcher"].origins(),
      },
    }),
    drain: proxy.drain,
    close: async () => proxy.close(),
  };
}
