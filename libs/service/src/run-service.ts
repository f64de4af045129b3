import type { Logger } from "pino";
import type { Registry } from "prom-client";
import type { App } from "./app.ts";
import { appSettings } from "./app-settings.ts";
import { type ReadReadiness, registerHealth } from "./health.ts";
import { explainListenError, urlOfServer } from "./listen.ts";
import { startMetricsServer } from "./metrics-server.ts";
import { releaseAll } from "./release.ts";
import { type ListenConfig, listenHost } from "./shared-variables.ts";
import { faultEvents } from "./start-or-exit.ts";

/**
 * A service's life. It listens, says where, and serves until it is told to stop: by SIGTERM or SIGINT,
 * or by the end of the channel to the process that started it, so that it never outlives its launcher.
 *
 * Stopping goes in this order: not ready any more; `drain`, which ends what would go on for ever, such
 * as open streams; no new connections, while open requests finish; the resources in `close`, the last
 * one first; exit 0. A second signal does not hurry it. What takes longer than the bound is cut off
 * with exit 1.
 */
export type ServiceOptions = {
  /** Says where to listen. */
  config: ListenConfig;
  logger: Logger;
  app: App;
  metrics: Registry;
  readiness: ReadReadiness;
  /** Where `/readyz` contains the details of the readiness. The API's port may be open to anyone. */
  readinessDetails?: "everywhere" | "metrics-port-only";
  drain?: () => Promise<void>;
  /** What to release at the end; in the order in which it was acquired. */
  close: readonly (() => Promise<void>)[];
};

export type RunningService = { url: string; metricsUrl: string; stop: () => Promise<void> };

/** Below the 20 s in which a service promises to be gone, with time left to say so. */
const maxStopMs = 18_000;

/** A connection whose answer has just ended is idle only now; how often such ones are looked for. */
const idleSweepIntervalMs = 50;

export async function runService(options: ServiceOptions): Promise<RunningService> {
  const { app, config, logger } = options;
  const host = listenHost(config);
  const address = { host, port: config.PORT };
  const settings = appSettings(app);
  const readiness: ReadReadiness = () =>
    settings.draining
      ? { ...options.readiness(), ready: false, draining: true }
      : options.readiness();
  const isPublic = options.readinessDetails === "metrics-port-only";
  registerHealth(app, isPublic ? () => ({ ready: readiness().ready }) : readiness);
  exitOnFaults(logger);
  const metricsServer = await startMetricsServer({
    host,
    port: config.METRICS_PORT,
    registry: options.metrics,
    readiness,
  });
  try {
    await app.listen(address);
  } catch (error) {
    await metricsServer.close();
    throw explainListenError(error, "PORT", address);
  }
  const url = urlOfServer(app.server);
  const metricsUrl = metricsServer.url;

  const stopOnce = async () => {
    settings.draining = true;
    await releaseAll([
      metricsServer.close,
      ...options.close,
      () => closeApp(app),
      async () => options.drain?.(),
    ]);
  };
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= stopOnce();
    return stopping;
  };
  exitOnSignal(logger, stop);
  logger.info({ url, metrics_url: metricsUrl }, "listening");
  process.send?.({ type: "listening", url, metrics_url: metricsUrl });
  return { url, metricsUrl, stop };
}

/** Waits for open requests, never for connections that only wait for another one. */
async function closeApp(app: App): Promise<void> {
  const sweep = setInterval(() => app.server.closeIdleConnections(), idleSweepIntervalMs);
  try {
    await app.close();
  } finally {
    clearInterval(sweep);
  }
}

function exitOnSignal(logger: Logger, stop: () => Promise<void>): void {
  let isStopping = false;
  const onSignal = (reason: string) => {
    if (isStopping) return;
    isStopping = true;
    logger.info({ reason }, "stopping");
    const bound = setTimeout(() => {
      logger.fatal({ timeout_ms: maxStopMs }, "stopping took too long");
      process.exit(1);
    }, maxStopMs);
    bound.unref();
    stop().then(
      () => {
        logger.info("stopped");
        process.exit(0);
      },
      (error: unknown) => {
        logger.fatal({ err: error }, "stopping failed");
        process.exit(1);
      },
    );
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    // A container has handlers that end the process during its start.
    process.removeAllListeners(signal);
    process.on(signal, () => onSignal(signal));
  }
  if (process.send !== undefined) process.once("disconnect", () => onSignal("launcher gone"));
}

/** After a fault that nobody expected the state is unknown; a fresh process is the way out. */
function exitOnFaults(logger: Logger): void {
  for (const event of faultEvents) {
    // Replaces the listeners of `startOrExit`, which have no logger.
    process.removeAllListeners(event);
    process.on(event, (error: unknown) => {
      logger.fatal({ err: error }, messageOf[event]);
      process.exit(1);
    });
  }
}

const messageOf = {
  uncaughtException: "uncaught exception",
  unhandledRejection: "unhandled rejection",
};
