import {
  createKeyDirectory,
  createKeyLimits,
  createKeySignatures,
  createLastUsed,
  createServerKeyAuthentication,
} from "@halyard/api-keys";
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
import { v7 as uuidv7 } from "uuid";
import { createSchedulerApp } from "./app.ts";
import { startCleanUp } from "./clean-up.ts";
import { readConfig } from "./config.ts";
import { createFlagDirectory } from "./directory/flag-directory.ts";
import { createScheduleChanges } from "./schedules/schedule-changes.ts";
import { startWorkers } from "./workers.ts";

await startOrExit(async () => {
  const config = readConfig();
  const service = "scheduler";
  const logger = createLogger({ service, level: config.LOG_LEVEL });
  const metrics = createMetrics({ service });
  const database = openDatabase({
    url: config.POSTGRES_URL,
    name: service,
    maxConnections: config.POSTGRES_MAX_CONNECTIONS,
    logger,
  });
  const { sql } = database;
  const keys = createKeyDirectory(
    createKeySignatures({ publicKeys: config.SIGNING_PUBLIC_KEYS, metrics, logger }),
  );
  const flags = createFlagDirectory({ now: Date.now });
  const lastUsed = createLastUsed();
  const workers = startWorkers({
    nats: natsServers(config),
    sql,
    keys,
    flags,
    lastUsed,
    metrics,
    logger,
  });
  const cleanUp = startCleanUp({ sql, logger });
  const app = createSchedulerApp({
    sql,
    changes: createScheduleChanges({
      sql,
      newId: (at) => uuidv7({ msecs: at.getTime() }),
      monotonicMs: () => performance.now(),
      onSet: workers.onSet,
    }),
    findFlag: flags.find,
    authenticate: createServerKeyAuthentication({
      verify(text, nowMs) {
        if (workers.flagsAreLoaded()) return keys.verify(text, nowMs);
        throw new UnavailableError(
          "The scheduler has not loaded its API keys and flags yet; retry after 1 s.",
        );
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
    readiness: () => ({ ready: database.isUp() && workers.flagsAreLoaded(), ...workers.details() }),
    close: [database.close, cleanUp.stop, workers.stop],
  });
});
