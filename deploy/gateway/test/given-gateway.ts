import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createLogger, createMetrics, type Logger, type Metrics } from "@halyard/service";
import { createGateway, type Gateway } from "../src/gateway.ts";

/** A plain HTTP server in the role of a service behind the gateway. */
export type Upstream = { server: Server; origin: URL; close: () => Promise<void> };

export async function givenUpstream(listener: RequestListener, port = 0): Promise<Upstream> {
  const server = createServer(listener);
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const origin = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const close = async () => {
    const closed = once(server, "close");
    server.close();
    server.closeAllConnections();
    await closed;
  };
  return { server, origin, close };
}

/**
 * Returns an origin at which no server listens. Its port is below those that a system assigns (from 32768 on Linux), so
 * that no other process is given it.
 */
export async function findUnusedOrigin(): Promise<URL> {
  const upstream = await givenUpstream(() => undefined, randomInt(10_000, 30_000));
  await upstream.close();
  return upstream.origin;
}

export type GivenGateway = Gateway & { url: string; port: number; stop: () => Promise<void> };

export async function givenGateway(options: {
  management: readonly URL[];
  edges: readonly URL[];
  schedulers?: readonly URL[];
  dispatchers?: readonly URL[];
  meterings?: readonly URL[];
  dashboards?: readonly URL[];
  trustedProxies?: readonly string[];
  answerWithinMs?: number;
  logger?: Logger;
  metrics?: Metrics;
}): Promise<GivenGateway> {
  const gateway = createGateway({
    logger: options.logger ?? createLogger({ service: "gateway", level: "silent" }),
    metrics: options.metrics ?? createMetrics({ service: "gateway" }),
    trustedProxies: options.trustedProxies ?? [],
    upstreams: {
      management: options.management,
      scheduler: options.schedulers ?? [],
      "sdk-edge": options.edges,
      "usage-metering": options.meterings ?? [],
      "webhook-dispatcher": options.dispatchers ?? [],
      dashboard: options.dashboards ?? [],
    },
    ...(options.answerWithinMs === undefined ? {} : { answerWithinMs: options.answerWithinMs }),
  });
  const url = await gateway.app.listen({ host: "127.0.0.1", port: 0 });
  const stop = async () => {
    await gateway.close();
    gateway.app.server.closeAllConnections();
    await gateway.app.close();
  };
  return { ...gateway, url, port: Number(new URL(url).port), stop };
}

export async function bodyOf(message: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** Returns a promise and its resolving functions. */
export function promised<T = void>() {
  return Promise.withResolvers<T>();
}
