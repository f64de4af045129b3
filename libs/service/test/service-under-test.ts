import {
  ConfigurationError,
  createApp,
  createLogger,
  createMetrics,
  runService,
  startOrExit,
} from "../src/index.ts";

/** A whole service, run as a process of its own by the tests of stopping. Its argument says how it behaves. */
const behaviour = process.argv[2];
const port = Number(process.argv[3] ?? "0");

await startOrExit(async () => {
  if (behaviour === "misconfigured")
    throw new ConfigurationError(["PORT must be a port.", "HOST is not set."]);
  const logger = createLogger({ service: "under-test", level: "info" });
  const metrics = createMetrics({ service: "under-test" });
  const app = createApp({ logger, metrics, bodyLimitBytes: 1024, trustedProxies: [] });
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  app.get("/slow", async (_request, reply) => {
    logger.info("slow request under way");
    await released;
    return reply.send("finished");
  });
  app.get("/fast", (_request, reply) => reply.send("fast"));
  app.get("/rejects", (_request, reply) => {
    void Promise.reject(new Error("nobody listens"));
    reply.send("rejected");
  });
  const closing = (name: string) => async () => {
    logger.info({ name }, "closed");
    if (behaviour === "fails-to-close") throw new Error(`${name} does not close`);
  };
  await runService({
    config: { HALYARD_MODE: "development", PORT: port, METRICS_PORT: 0 },
    logger,
    app,
    metrics,
    readiness: () => ({ ready: behaviour !== "unready", waiting_for: "nothing" }),
    drain: async () => {
      logger.info("draining");
      // The slow request ends only after the order to stop, so that it is open while that goes on.
      setTimeout(release, 100);
    },
    close: [closing("first"), closing("second")],
  });
});
