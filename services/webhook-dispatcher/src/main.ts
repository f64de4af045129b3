import { randomBytes } from "node:crypto";
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
import { createWebhookApp } from "./app.ts";
import { startCleanUp } from "./clean-up.ts";
import { readConfig } from "./config.ts";
import { startDispatch } from "./dispatch/dispatcher.ts";
import { createSecretBox } from "./secrets/secret-box.ts";
import { createSend } from "./sending/send.ts";
import { chooseTargetRules } from "./targets/target.ts";
import { createWebhookTests } from "./webhooks/webhook-tests.ts";
import { startWorkers } from "./workers.ts";

await startOrExit(async () => {
  const config = readConfig();
  const service = "webhook-dispatcher";
  const logger = createLogger({ service, level: config.LOG_LEVEL });
  const metrics = createMetrics({ service });
  const database = openDatabase({
    url: config.POSTGRES_URL,
    name: service,
    maxConnections: config.POSTGRES_MAX_CONNECTIONS,
    logger,
  });
  const { sql } = database;
  const isProduction = config.HALYARD_MODE === "production";
  const allowPrivate = config.WEBHOOK_ALLOW_PRIVATE_TARGETS;
  const rules = chooseTargetRules({ isProduction, allowPrivate, logger });
  const secrets = createSecretBox({ keys: config.WEBHOOK_SECRET_KEYS, randomBytes });
  const sender = createSend({ rules });
  const keys = createKeyDirectory(
    createKeySignatures({ publicKeys: config.SIGNING_PUBLIC_KEYS, metrics, logger }),
  );
  const lastUsed = createLastUsed();
  const ids = { newId: () => uuidv7(), now: () => new Date() };
  const shared = { sql, secrets, metrics, logger, send: sender.send, ...ids };
  const dispatch = startDispatch({
    ...shared,
    plan: config.WEBHOOK_RETRY_DELAYS,
    random: Math.random,
    monotonicMs: () => performance.now(),
  });
  const workers = startWorkers({
    ...shared,
    nats: natsServers(config),
    keys,
    lastUsed,
    onDeliveries: dispatch.wake,
  });
  const retentionDays = config.WEBHOOK_DELIVERY_RETENTION_DAYS;
  const cleanUp = startCleanUp({ ...shared, retentionDays });
  const maxPerOrganization = config.WEBHOOK_TESTS_PER_ORGANIZATION;
  const tests = createWebhookTests({ ...shared, maxPerOrganization });
  const app = createWebhookApp({
    ...shared,
    rules,
    tests,
    webhooksPerProject: config.WEBHOOKS_PER_PROJECT,
    onDue: dispatch.wake,
    authenticate: createServerKeyAuthentication({
      verify(text, nowMs) {
        if (workers.keysAreLoaded()) return keys.verify(text, nowMs);
        throw new UnavailableError("The webhook dispatcher has not loaded the API keys yet.");
      },
      limits: createKeyLimits(keyRate(config)),
      lastUsed,
      operatorTokenDigest: config.OPERATOR_TOKEN_DIGEST,
      nowMs: Date.now,
    }),
    trustedProxies: config.TRUSTED_PROXIES,
    checkAnswers: !isProduction,
  });
  await runService({
    config,
    logger,
    app,
    metrics,
    readiness: () => ({ ready: database.isUp() && workers.keysAreLoaded(), ...workers.details() }),
    drain: tests.stop,
    close: [database.close, sender.close, cleanUp.stop, dispatch.stop, workers.stop],
  });
});
