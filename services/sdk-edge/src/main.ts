import { createLogger, createMetrics, runService, startOrExit } from "@halyard/service";
import { createEdge } from "./app.ts";
import { readConfig } from "./config.ts";
import { createDiskCache } from "./snapshot/disk-cache.ts";
import { followNats } from "./snapshot/follow-nats.ts";
import { createSnapshotHolder } from "./snapshot/snapshot-holder.ts";

await startOrExit(async () => {
  const config = readConfig();
  const service = "sdk-edge";
  const now = Date.now;
  const logger = createLogger({ service, level: config.LOG_LEVEL });
  const registry = createMetrics({ service });
  const holder = createSnapshotHolder({ now });
  const file = config.SNAPSHOT_CACHE_FILE;
  const cache = file === undefined ? undefined : createDiskCache({ file, holder, logger, now });
  const nats = followNats({ url: config.NATS_URL, holder, cache, logger });
  const edge = createEdge({
    holder,
    logger,
    registry,
    trustedProxies: config.TRUSTED_PROXIES,
    checkAnswers: config.HALYARD_MODE === "development",
    rejectedEntries: nats.rejectedEntries,
    now,
    random: Math.random,
  });

  await runService({
    name: service,
    logger,
    app: edge.app,
    listen: { host: config.host, port: config.PORT },
    metrics: { host: config.host, port: config.METRICS_PORT, registry },
    readiness: edge.readiness,
    drain: edge.drain,
    close: [async () => cache?.close(), nats.stop, edge.close],
  });
});
