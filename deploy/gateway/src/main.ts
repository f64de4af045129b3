import { createLogger, createMetrics, runService, startOrExit } from "@halyard/service";
import { readConfig } from "./config.ts";
import { createGateway } from "./gateway.ts";

await startOrExit(async () => {
  const config = readConfig();
  const service = "gateway";
  const logger = createLogger({ service, level: config.LOG_LEVEL });
  const metrics = createMetrics({ service });
  const gateway = await createGateway({
    logger,
    metrics,
    trustedProxies: config.TRUSTED_PROXIES,
    upstreams: config.upstreams,
    limits: config.limits,
    exampleIdsFile: config.EXAMPLE_IDS_FILE,
    dashboardDir: config.DASHBOARD_DIR,
    signInFile: config.SIGN_IN_FILE,
  });
  await runService({
    config,
    logger,
    app: gateway.app,
    metrics,
    readiness: gateway.readiness,
    readinessDetails: "metrics-port-only",
    drain: gateway.drain,
    close: [gateway.close],
  });
});
