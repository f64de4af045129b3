import { ConfigurationError } from "@halyard/configuration";
import { createApp } from "@halyard/http";
import { createLogger, createMetrics, runService, startOrExit } from "../src/index.ts";

/** A complete service, which tests run in its own process. Its argument selects the behavior. */
const mark = "s3cret-mark";
const behavior = process.argv[2];
const port = Number(process.argv[3] ?? "0");

/** Returns an error whose texts contain a mark instead of a value. */
function markedError(): Error {
  const texts = { query: mark, options: { url: mark }, code: "EFAULT" };
  return Object.assign(new Error(mark, { cause: new Error(mark) }), texts);
}

await startOrExit(async () => {
  if (behavior === "fails-to-start") throw markedError();
  if (behavior === "fails-beside-start") {
    setImmediate(() => {
      throw markedError();
    });
    await new Promise(() => setTimeout(() => undefined, 60_000));
  }
  if (behavior === "misconfigured")
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
    void Promise.reject(markedError());
    reply.send("rejected");
  });
  app.get("/throws", () => {
    throw markedError();
  });
  app.get("/sends-twice", async (_request, reply) => {
    await reply.send("first");
    return markedError();
  });
  app.get("/throws-later", (_request, reply) => {
    setImmediate(() => {
      throw markedError();
    });
    reply.send("thrown");
  });
  const closing = (name: string) => async () => {
    logger.info({ name }, "closed");
    if (behavior === "fails-to-close") throw markedError();
  };
  await runService({
    config: {
      HALYARD_MODE: "development",
      PORT: port,
      METRICS_PORT: 0,
      TRUSTED_PROXIES: [],
      MAX_CONNECTIONS: 100,
      MAX_CONNECTIONS_PER_ADDRESS: 100,
    },
    logger,
    app,
    metrics,
    readiness: () => ({ ready: behavior !== "unready", waiting_for: "nothing" }),
    drain: async () => {
      logger.info("draining");
      // The slow request ends only after the stop has begun, so that it is open meanwhile.
      setTimeout(release, 100);
    },
    close: [closing("first"), closing("second")],
  });
});
