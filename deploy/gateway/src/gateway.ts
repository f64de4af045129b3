import type { ServiceName } from "@halyard/contracts";
import { type App, createApp } from "@halyard/http";
import type { Metrics, ReadReadiness } from "@halyard/service";
import { Counter } from "prom-client";
import { limitConnections } from "./connection-limits.ts";
import { type DashboardOptions, registerDashboard } from "./dashboard.ts";
import { type DocsOptions, registerDocs } from "./docs-page.ts";
import { serveOneAtATime } from "./one-at-a-time.ts";
import { createProxy } from "./proxy.ts";
import { createRepeatedLog, type RepeatedLog } from "./repeated-log.ts";
import { routeTable } from "./route-table.ts";
import { createService, type Service, type ServiceLimits } from "./service.ts";
import { registerSignIn, type SignInOptions } from "./sign-in.ts";
import { createTrustedPeers } from "./trusted-peers.ts";
import { routeUndecodablePaths } from "./undecodable-paths.ts";

type GatewayOptions = DocsOptions &
  DashboardOptions &
  SignInOptions & {
    metrics: Metrics;
    trustedProxies: readonly string[];
    upstreams: Readonly<Record<ServiceName, readonly URL[]>>;
    limits: GatewayLimits;
    /** Replaces the time limit of every service, for tests. */
    answerWithinMs?: number;
  };

export type GatewayLimits = ServiceLimits & {
  connections: number;
  connectionsPerAddress: number;
};

export type Gateway = {
  app: App;
  readiness: ReadReadiness;
  drain: () => Promise<void>;
  close: () => Promise<void>;
};

/** Maximum body size of requests that the gateway answers itself. Only a sign-in has a body. */
const ownBodyLimitBytes = 1024;

/**
 * Maximum silence of a service before its response begins. A service that is silent for longer is stuck. Services with
 * a database report after 20 s that PostgreSQL is unavailable. Webhook dispatchers wait up to 30 s for the target of a
 * test. Edges respond from memory, or once they know whether a slot for a stream is free.
 */
const answerWithinMs: Readonly<Record<ServiceName, number>> = {
  management: 25_000,
  scheduler: 25_000,
  "usage-metering": 25_000,
  "webhook-dispatcher": 40_000,
  "sdk-edge": 10_000,
};

/**
 * Creates the gateway. It forwards the routes of the route table to their services, and serves the documentation and
 * the dashboard.
 */
export async function createGateway(options: GatewayOptions): Promise<Gateway> {
  const { logger, metrics, trustedProxies } = options;
  const app = createApp({
    logger,
    metrics,
    trustedProxies,
    bodyLimitBytes: ownBodyLimitBytes,
    requestLog: false,
  });
  routeUndecodablePaths(app.server);
  const isTrustedPeer = createTrustedPeers(trustedProxies);
  const warn = createRepeatedLog(logger);
  const rejected = countRejections(metrics, warn);
  const { connections: max, connectionsPerAddress: maxPerAddress } = options.limits;
  const activity = limitConnections(app.server, { max, maxPerAddress, isTrustedPeer, rejected });
  serveOneAtATime(app, activity);
  await registerDocs(app, options);
  await registerDashboard(app, options);
  registerSignIn(app, options);
  const proxy = createProxy({ warn, rejected: () => rejected("busy") });
  const serviceAt = (name: ServiceName) => createService(options.upstreams[name], options.limits);
  const services: Readonly<Record<ServiceName, Service>> = {
    management: serviceAt("management"),
    scheduler: serviceAt("scheduler"),
    "sdk-edge": serviceAt("sdk-edge"),
    "usage-metering": serviceAt("usage-metering"),
    "webhook-dispatcher": serviceAt("webhook-dispatcher"),
  };
  for (const { pattern, service } of routeTable) {
    const forward = proxy.createForward({
      service: services[service],
      isTrustedPeer,
      answerWithinMs: options.answerWithinMs ?? answerWithinMs[service],
    });
    app.all(pattern, {
      // Runs before the body is read, and never calls `done`, so that Fastify does not handle the request.
      onRequest: (request, reply, _done) => forward(request, reply),
      handler: () => undefined,
    });
  }
  return {
    app,
    // The gateway can always respond, if only with 503.
    readiness: () => ({
      ready: true,
      upstreams: Object.fromEntries(
        Object.entries(services).map(([name, { upstreams }]) => [name, upstreams.origins()]),
      ),
    }),
    drain: proxy.drain,
    close: async () => proxy.close(),
  };
}

type Rejection = "busy" | "connections" | "connections_per_address";

function countRejections(metrics: Metrics, warn: RepeatedLog): (reason: Rejection) => void {
  const rejections = new Counter({
    name: "halyard_gateway_rejected_total",
    help: "Requests that found no free slot in time, and connections beyond a limit.",
    labelNames: ["reason"],
    registers: [metrics],
  });
  return (reason) => {
    rejections.inc({ reason });
    warn({ cause: reason }, "rejected");
  };
}
