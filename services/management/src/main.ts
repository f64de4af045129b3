import { randomUUID } from "node:crypto";
import {
  createEntrySigner,
  createKeyDirectory,
  createKeyLimits,
  createKeySignatures,
  createLastUsed,
  type KeyLimits,
} from "@halyard/api-keys";
import { keyRate, natsServers } from "@halyard/configuration";
import { defaultPlans } from "@halyard/contracts";
import { createMessageSigner, createMessageVerifier } from "@halyard/jetstream";
import { createCallers, createPeopleDirectory, createPlaces } from "@halyard/people";
import { type Database, openDatabase, type Sql } from "@halyard/postgres";
import { createLogger, createMetrics, runService, startOrExit } from "@halyard/service";
import { startTracing } from "@halyard/tracing";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import { v7 as uuidv7 } from "uuid";
import { createManagementApp } from "./app.ts";
import { startRemovingLists } from "./audiences/remove-lists.ts";
import { type Config, readConfig } from "./config.ts";
import { startFilling } from "./flags/environment-fills.ts";
import { createKeyLookup } from "./keys/key-lookup.ts";
import { createWriter, type Writer } from "./outbox/write.ts";
import { allowDemoKeys, type DemoKeyCheck, forbidDemoKeys } from "./people/demo-keys.ts";
import type { GroupSettings } from "./people/group-grants.ts";
import { createPeopleLookup } from "./people/people-lookup.ts";
import { createChangeStreams } from "./publishing/change-streams.ts";
import { startEndingIdle } from "./sign-in/end-idle.ts";
import { type SignInSettings, signInSettings } from "./sign-in/settings.ts";
import { checkDatabase } from "./tenancy/check-database.ts";
import { startRemoving } from "./upkeep/remove-deleted.ts";
import { startRetention } from "./upkeep/retention.ts";
import { startWorkers, type Workers } from "./workers.ts";

/**
 * Returns what signs and verifies entries and messages. The public key of the signer is always included, so management
 * accepts its own signatures even if `SIGNING_PUBLIC_KEYS` lacks the key.
 */
function signing(
  { SIGNING_PRIVATE_KEY: own, SIGNING_PUBLIC_KEYS: others = [], ...config }: Config,
  options: Omit<Parameters<typeof createKeySignatures>[0], "publicKeys">,
) {
  const signer = own && createEntrySigner(own);
  const publicKeys = signer ? [signer.publicKey, ...others] : others;
  return {
    signer,
    signatures: createKeySignatures({ ...options, publicKeys }),
    sign: createMessageSigner(own),
    verify: createMessageVerifier({
      publicKeys: {
        management: publicKeys,
        scheduler: config.SCHEDULER_SIGNING_PUBLIC_KEYS,
        "webhook-dispatcher": config.WEBHOOK_DISPATCHER_SIGNING_PUBLIC_KEYS,
      },
      logger: options.logger,
    }),
  };
}

function createReadiness(database: Database, demoKeys: DemoKeyCheck, workers: Workers) {
  return () => ({
    ready: database.isUp() && demoKeys.isDone(),
    ...demoKeys.details(),
    ...workers.details(),
  });
}

/** Starts the periodic work that no request waits for. Returns the functions that stop it. */
function startBackgroundWork(
  { AUDIT_RETENTION_DAYS: auditDays, ENDED_KEY_RETENTION_DAYS: endedKeyDays }: Config,
  {
    unawaitedWriter,
    ...options
  }: Parameters<typeof startFilling>[0] & { unawaitedWriter: Writer; metrics: Registry },
) {
  const retention = startRetention({
    ...options,
    writer: unawaitedWriter,
    periods: { auditDays, endedKeyDays },
  });
  const batches = [startFilling(options), startRemoving(options), startRemovingLists(options)];
  const idle = startEndingIdle({ ...options, writer: unawaitedWriter });
  return [retention, idle, ...batches].map(({ stop }) => stop);
}

function openOwnDatabase(config: Config, logger: Logger): Database {
  const { POSTGRES_URL: url, POSTGRES_MAX_CONNECTIONS: maxConnections } = config;
  return openDatabase({ url, name: "management", maxConnections, logger });
}

const createDirectories = (signatures: Parameters<typeof createKeyDirectory>[0]) => ({
  directory: createKeyDirectory(signatures),
  people: createPeopleDirectory(),
  places: createPlaces(),
});

/** Creates the lookups of keys and sessions. */
function createFinders(
  signIn: SignInSettings | undefined,
  parts: ReturnType<typeof createDirectories> &
    GroupSettings & { sql: Sql; workers: Workers; limits: KeyLimits },
) {
  const { peopleAreCurrent, directoryIsCurrent } = parts.workers;
  const placesAreCurrent = directoryIsCurrent;
  const people = createPeopleLookup({ ...parts, peopleAreCurrent, placesAreCurrent });
  return {
    findKey: createKeyLookup({ ...parts, directoryIsCurrent }),
    callers: createCallers({
      people,
      publicUrl: signIn?.publicUrl,
      nowMs: Date.now,
    }),
    signIn: signIn && { settings: signIn, people },
  };
}

const exitWith = (error: Error) => void startOrExit(() => Promise.reject(error));

await startOrExit(async () => {
  const config = readConfig();
  await startTracing("management", config);
  const logger = createLogger({ service: "management", level: config.LOG_LEVEL });
  const metrics = createMetrics({ service: "management" });
  const database = openOwnDatabase(config, logger);
  const { sql } = database;
  const plans = { ...defaultPlans, ...config.PLANS };
  const planOptions = { plans, now: () => new Date(), newId: uuidv7, logger };
  const databaseCheck = await checkDatabase(sql, planOptions, exitWith);
  const isProduction = config.HALYARD_MODE === "production";
  const demoKeys = isProduction
    ? await forbidDemoKeys({ sql, onFound: exitWith, logger })
    : allowDemoKeys;
  const signed = signing(config, { metrics, logger });
  const directories = createDirectories(signed.signatures);
  const lastUsed = createLastUsed();
  const signIn = signInSettings(config);
  const groupsOrganizations = signIn?.oidc?.admission.groupsOrganizations ?? [];
  const shared = { ...planOptions, sql, groupsOrganizations, lastUsed, metrics };
  const changeStreams = createChangeStreams({ ...shared, monotonicMs: () => performance.now() });
  const workers = startWorkers({
    onWritten: changeStreams.wake,
    nats: natsServers(config),
    replicas: config.JETSTREAM_REPLICAS,
    flagEventsMaxBytes: config.FLAG_EVENTS_MAX_BYTES,
    holder: randomUUID(),
    ...{ ...directories, ...signed },
    ...shared,
  });
  const writer = createWriter({ ...workers, sql, newId: uuidv7 });
  const background = startBackgroundWork(config, {
    ...shared,
    writer,
    // Has no effects, because no request waits for the removal of an expired key.
    unawaitedWriter: createWriter({ wakeRelay: workers.wakeRelay, sql, newId: uuidv7 }),
  });
  const limits = createKeyLimits(keyRate(config));
  const parts = { sql, workers, limits, groupsOrganizations, ...directories };
  const { findKey, ...finders } = createFinders(signIn, parts);
  const app = createManagementApp({
    ...shared,
    writer,
    changeStreams,
    findKey: (...caller) => {
      demoKeys.assertDone();
      return findKey(...caller);
    },
    ...finders,
    readStatus: workers.readStatus,
    operatorToken: config.OPERATOR_TOKEN,
    keyLimits: limits,
    trustedProxies: config.TRUSTED_PROXIES,
    ...{ checkAnswers: !isProduction, allowDemoUser: !isProduction },
    signInByKey: config.SIGN_IN_BY_KEY === "on",
  });
  await runService({
    config,
    logger,
    app,
    metrics,
    readiness: createReadiness(database, demoKeys, workers),
    drain: changeStreams.drain,
    close: [
      database.close,
      ...[databaseCheck.stop, demoKeys.stop, workers.stop, changeStreams.stop],
      ...background,
    ],
  });
});
