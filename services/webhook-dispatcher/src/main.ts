import { randomBytes } from "node:crypto";
import { createMessageSigner, createMessageVerifier } from "@halyard/jetstream";
import { openService } from "@halyard/server-key-service";
import { startOrExit } from "@halyard/service";
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
  const service = await openService("webhook-dispatcher", config);
  const isProduction = config.HALYARD_MODE === "production";
  const allowPrivate = config.WEBHOOK_ALLOW_PRIVATE_TARGETS;
  const rules = chooseTargetRules({ isProduction, allowPrivate, logger: service.logger });
  const secrets = createSecretBox({ keys: config.WEBHOOK_SECRET_KEYS, randomBytes });
  const sender = createSend({ rules });
  const ids = { newId: () => uuidv7(), now: () => new Date() };
  const shared = { ...service, secrets, send: sender.send, ...ids };
  const dispatch = startDispatch({
    ...shared,
    plan: config.WEBHOOK_RETRY_DELAYS,
    random: Math.random,
    monotonicMs: () => performance.now(),
  });
  const workers = startWorkers({
    ...shared,
    sign: createMessageSigner(config.WEBHOOK_DISPATCHER_SIGNING_PRIVATE_KEY),
    verify: createMessageVerifier({
      publicKeys: { management: config.SIGNING_PUBLIC_KEYS },
      logger: service.logger,
    }),
    onDeliveries: dispatch.wake,
  });
  const retentionDays = config.WEBHOOK_DELIVERY_RETENTION_DAYS;
  const cleanUp = startCleanUp({ ...shared, retentionDays });
  const maxPerOrganization = config.WEBHOOK_TESTS_PER_ORGANIZATION;
  const tests = createWebhookTests({ ...shared, maxPerOrganization });
  const app = createWebhookApp({
    ...shared,
    ...service.appOptions(workers),
    rules,
    tests,
    webhooksPerProject: config.WEBHOOKS_PER_PROJECT,
    onDue: dispatch.wake,
  });
  await service.run({
    app,
    workers,
    drain: tests.stop,
    close: [sender.close, cleanUp.stop, dispatch.stop],
  });
});
