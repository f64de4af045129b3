import { createLogger, createMetrics, runService, startOrExit } from "@halyard/service";
import { readConfig } from "./config.ts";
import { createPages } from "./pages.ts";

await startOrExit(async () => {
  const config = readConfig();
  const service = "dashboard";
  const logger = createLogger({ service, level: config.LOG_LEVEL });
  const metrics = createMetrics({ service });
  const app = await createPages({
    logger,
    metrics,
    trustedProxies: config.TRUSTED_PROXIES,
    demoFile: config.DEMO_FILE,
    dashboardDir: config.DASHBOARD_DIR,
  });
  await runService({
    config,
    logger,
    app,
    metrics,
    readiness: () => ({ ready: true }),
    close: [],
  });
});
