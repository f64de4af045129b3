import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createProblem, noSuchRoute, pathOf, writeProblem } from "@halyard/http";
import type { Registry } from "prom-client";
import { alive, type ReadReadiness, readinessAnswer } from "./health.ts";
import { explainListenError, type ListenAddress, urlOfServer } from "./listen.ts";

type MetricsServer = { url: string; close: () => Promise<void> };

type Parts = { registry: Registry; readiness: ReadReadiness };

/**
 * Starts the server of metrics and probes. It has its own port, which need not be open to clients of the API, and it
 * still serves requests while the API drains.
 */
export async function startMetricsServer(options: ListenAddress & Parts): Promise<MetricsServer> {
  const server = createServer((request, response) => {
    response.setHeader("X-Content-Type-Options", "nosniff");
    answerProbe(options, request, response).catch((error: unknown) => {
      const problem = createProblem("SERVER_001", "The metrics could not be collected");
      if (response.headersSent) response.destroy(error as Error);
      else writeProblem(response, problem);
    });
  });
  server.listen(options.port, options.host);
  try {
    await once(server, "listening");
  } catch (error) {
    throw explainListenError(error, "METRICS_PORT", options);
  }
  return {
    url: urlOfServer(server),
    close: async () => {
      const closed = once(server, "close");
      server.close();
      // A scraper keeps its connection open, so waiting for it would never end.
      server.closeAllConnections();
      await closed;
    },
  };
}

async function answerProbe(
  { registry, readiness }: Parts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (request.method !== "GET" && request.method !== "HEAD") {
    writeProblem(response, noSuchRoute);
    return;
  }
  switch (pathOf(request.url ?? "")) {
    case "/":
    case "/metrics":
      write(response, {
        status: 200,
        type: registry.contentType,
        body: await registry.metrics(),
      });
      return;
    case "/healthz":
      write(response, { status: 200, type: "application/json", body: alive });
      return;
    case "/readyz":
      write(response, { type: "application/json", ...readinessAnswer(readiness) });
      return;
    default:
      writeProblem(response, noSuchRoute);
  }
}

function write(
  response: ServerResponse,
  { status, type, body }: { status: number; type: string; body: string },
): void {
  response.writeHead(status, {
    "content-type": type,
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
  });
  response.end(body);
}
