import { type ListenConfig, listenHost } from "@halyard/configuration";
import { type App, appSettings } from "@halyard/http";
import { onTracesLost, stopTracing } from "@halyard/tracing";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import { limitConnections } from "./connection-limits.ts";
import { type ReadReadiness, registerHealth } from "./health.ts";
import { explainListenError, urlOfServer } from "./listen.ts";
import { startMetricsServer } from "./metrics-server.ts";
import { releaseAll } from "./release.ts";
import { faultEvents } from "./start-or-exit.ts";

/**
 * The life cycle of a service. It listens, reports its URL, and serves until SIGTERM or SIGINT arrives or the channel
 * to its launcher closes. It therefore never outlives its launcher.
 *
 * It stops in this order: it is no longer ready; `drain` ends unbounded work, such as open streams; it accepts no new
 * connections and finishes open requests; it releases the resources in `close`, the last one first; it sends the last
 * traces; it exits with 0. A second signal has no effect. If this takes longer than the time-out, it exits with 1.
 */
export type ServiceOptions = {
  /** Contains the address to listen on, and the limits of connections. */
  config: ListenConfig;
  logger: Logger;
  app: App;
  metrics: Registry;
  readiness: ReadReadiness;
  drain?: () => Promise<void>;
  /** Functions that release resources, in the order in which these were acquired. */
  close: readonly (() => Promise<void>)[];
};

type RunningService = { url: string; metricsUrl: string; stop: () => Promise<void> };

/** Below the 20 s within which a service promises to exit, with time left to log the reason. */
const maxStopMs = 18_000;

/** Interval of closing idle connections. A connection becomes idle when its last response ends. */
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
  limitConnections(app.server, config, options.metrics);
  registerHealth(app, readiness);
  exitOnFaults(logger);
  onTracesLost((err) => logger.warn({ err }, "traces could not be sent"));
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
      stopTracing,
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

/** Waits for open requests, but not for idle connections. */
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
    // In a container, earlier handlers end the process during its start.
    process.removeAllListeners(signal);
    process.on(signal, () => onSignal(signal));
  }
  if (process.send !== undefined) process.once("disconnect", () => onSignal("launcher gone"));
}

/** Exits after an uncaught error. The state of the process is unknown then, so only a restart is safe. */
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
