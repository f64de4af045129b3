import { createLogger, createMetrics, runService, startOrExit } from "@halyard/service";
import { readConfig } from "./config.ts";
import { createGateway } from "./gateway.ts";

await startOrExit(async () => {
  const config = readConfig();
  const service = "gateway";
  const logger = createLogger({ service, level: config.logLevel });
  const metrics = createMetrics({ service });
  const gateway = await createGateway({
    logger,
    metrics,
    trustedProxies: config.trustedProxies,
    upstreams: config.upstreams,
  });
  await runService({
    name: service,
    logger,
    app: gateway.app,
    listen: { host: config.host, port: config.port },
    metrics: { host: config.host, port: config.metricsPort, registry: metrics },
    readiness: gateway.readiness,
    drain: gateway.drain,
    close: [gateway.close],
  });
});
