import { createOpenStreams } from "@halyard/reports";
import { openService } from "@halyard/server-key-service";
import { startOrExit } from "@halyard/service";
import { createUsageApp } from "./app.ts";
import { startCleanUp } from "./clean-up.ts";
import { readConfig } from "./config.ts";
import { createUsageMetrics } from "./counting/usage-metrics.ts";
import { createDirectory } from "./directory/directory.ts";
import { startWorkers } from "./workers.ts";

await startOrExit(async () => {
  const config = readConfig();
  const service = await openService("usage-metering", config);
  const directory = createDirectory();
  const usageMetrics = createUsageMetrics(service.metrics);
  const shared = { ...service, directory, openStreams: createOpenStreams(), usageMetrics };
  const workers = startWorkers(shared);
  const cleanUp = startCleanUp({ ...shared, requestRetentionDays: config.USAGE_RETENTION_DAYS });
  const app = createUsageApp({ ...shared, ...service.appOptions(workers) });
  await service.run({ app, workers, close: [cleanUp.stop] });
});
