import {
  createKeyLimits,
  createKeySignatures,
  createLastUsed,
  createServerKeyAuthentication,
} from "@halyard/api-keys";
import { createOpenStreams } from "@halyard/jetstream";
import { openDatabase } from "@halyard/postgres";
import {
  createLogger,
  createMetrics,
  keyRate,
  natsServers,
  runService,
  startOrExit,
  UnavailableError,
} from "@halyard/service";
import { createUsageApp } from "./app.ts";
import { startCleanUp } from "./clean-up.ts";
import { readConfig } from "./config.ts";
import { createUsageMetrics } from "./counting/usage-metrics.ts";
import { createDirectory } from "./directory/directory.ts";
import { startWorkers } from "./workers.ts";

await startOrExit(async () => {
  const config = readConfig();
  const service = "usage-metering";
  const logger = createLogger({ service, level: config.LOG_LEVEL });
  const metrics = createMetrics({ service });
  const database = openDatabase({
    url: config.POSTGRES_URL,
    name: service,
    maxConnections: config.POSTGRES_MAX_CONNECTIONS,
    logger,
  });
  const { sql } = database;
  const directory = createDirectory(
    createKeySignatures({ publicKeys: config.SIGNING_PUBLIC_KEYS, metrics, logger }),
  );
  const openStreams = createOpenStreams();
  const lastUsed = createLastUsed();
  const usageMetrics = createUsageMetrics(metrics);
  const workers = startWorkers({
    nats: natsServers(config),
    sql,
    directory,
    openStreams,
    lastUsed,
    usageMetrics,
    metrics,
    logger,
  });
  const cleanUp = startCleanUp({
    sql,
    existing: {
      isSettled: workers.isSettled,
      flagExists: directory.flagExists,
      keyExists: (keyId) => directory.keys.isLive(keyId, Date.now()),
    },
    usageMetrics,
    requestRetentionDays: config.USAGE_RETENTION_DAYS,
    logger,
  });
  const app = createUsageApp({
    sql,
    directory,
    openStreams,
    authenticate: createServerKeyAuthentication({
      verify(text, nowMs) {
        if (workers.snapshotIsLoaded()) return directory.keys.verify(text, nowMs);
        throw new UnavailableError("Usage metering has not loaded the keys and flags yet.");
      },
      limits: createKeyLimits(keyRate(config)),
      lastUsed,
      operatorTokenDigest: config.OPERATOR_TOKEN_DIGEST,
      nowMs: Date.now,
    }),
    trustedProxies: config.TRUSTED_PROXIES,
    checkAnswers: config.HALYARD_MODE !== "production",
    metrics,
    logger,
  });
  await runService({
    config,
    logger,
    app,
    metrics,
    readiness: () => ({
      ready: database.isUp() && workers.snapshotIsLoaded(),
      ...workers.details(),
    }),
    close: [database.close, cleanUp.stop, workers.stop],
  });
});
