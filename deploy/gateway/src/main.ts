import { createLogger, createMetrics, runService, startOrExit } from "@halyard/service";
import { readConfig } from "./config.ts";
import { createGateway } from "./gateway.ts";

await startOrExit(async () => {
  const config = readConfig();
  const service = "gateway";
  const logger = createLogger({ service, level: config.LOG_LEVEL });
  const metrics = createMetrics({ service });
  const { app, drain, close } = createGateway({
    logger,
    metrics,
    trustedProxies: config.TRUSTED_PROXIES,
    upstreams: config.upstreams,
    publicUrl: config.PUBLIC_URL,
  });
  await runService({
    config,
    logger,
    app,
    metrics,
    // The gateway can always respond, if only with 503.
    readiness: () => ({ ready: true }),
    drain,
    close: [close],
  });
});
