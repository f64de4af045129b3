import { connect } from "node:net";
import type { LogLevel } from "@halyard/configuration";
import { createLogger, createMetrics, type Metrics } from "@halyard/service";
import { type App, type AppOptions, createApp } from "../src/app.ts";

/** An app on a free port, and its log. */
export type GivenApp = {
  app: App;
  url: string;
  port: number;
  metrics: Metrics;
  /** Log lines so far, parsed. */
  lines: () => Record<string, unknown>[];
  logText: () => string;
  close: () => Promise<void>;
};

export async function givenApp(
  register: (app: App) => void,
  options: Partial<AppOptions> & { level?: LogLevel } = {},
): Promise<GivenApp> {
  const written: string[] = [];
  const logger = createLogger({
    service: "test",
    level: options.level ?? "info",
    destination: { write: (line) => written.push(line) },
  });
  const metrics = createMetrics({ service: "test" });
  const app = createApp({
    logger,
    metrics,
    bodyLimitBytes: 1024,
    trustedProxies: [],
    ...options,
  });
  register(app);
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  return {
    app,
    url,
    port: Number(new URL(url).port),
    metrics,
    lines: () => written.map((line) => JSON.parse(line)),
    logText: () => written.join(""),
    close: () => app.close(),
  };
}

/** Writes bytes to a connection, and returns everything received until the server closes it. */
export async function sendRaw(port: number, bytes: string | Buffer): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.write(bytes);
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

export type ErrorAnswer = { error: Record<string, unknown> };

/** Members of an error response. It must have no others. */
export const fourFields = ["category", "code", "message", "status"];
