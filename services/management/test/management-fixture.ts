import { randomUUID } from "node:crypto";
import { createKeyDirectory, createKeyLimits, createLastUsed } from "@halyard/api-keys";
import { defaultPlans, type KeyEntry, type PlanLimits } from "@halyard/contracts";
import { connectPostgres } from "@halyard/postgres";
import { createMetrics } from "@halyard/service";
import {
  type CallOptions,
  call,
  createTestDatabase,
  eventually,
  once,
  payloadOf,
  startTestNats,
  type TestDatabase,
  type TestNats,
  tenantInSnapshot,
  testSignatures,
  testSigner,
} from "@halyard/testing";
import { type Logger, pino } from "pino";
import { v7 as uuidv7 } from "uuid";
import { createKeyLookup } from "../src/access/key-lookup.ts";
import { createManagementApp } from "../src/app.ts";
import { startBrokerSide } from "../src/broker-side.ts";
import { startFilling } from "../src/environments/start-filling.ts";
import { createWriter } from "../src/outbox/write.ts";

/**
 * Management as its main composes it, in this process, over a database and a NATS server of the test
 * file's own. The clock is the test's.
 */
export const operatorToken = "an operator token for the tests only";

/** What is below management, which can be opened over it again after it was stopped. */
type Backends = { database: TestDatabase; nats: TestNats };

export async function openManagement(
  options: {
    over?: Backends;
    plans?: Record<string, PlanLimits>;
    keyRate?: { requestsPerSecond: number; burst: number };
    logger?: Logger;
    /** False: the test fills new environments itself, batch by batch. */
    fillsEnvironments?: boolean;
  } = {},
) {
  const backends = options.over ?? (await openBackends());
  const { database, nats } = backends;
  const { plans = defaultPlans } = options;
  const logger = options.logger ?? pino({ level: process.env.TEST_LOG_LEVEL ?? "silent" });
  const sql = connectPostgres({
    url: database.runtimeUrls.management,
    name: "test",
    maxConnections: 10,
    logger,
  });
  const metrics = createMetrics({ service: "management" });
  const directory = createKeyDirectory(testSignatures());
  const lastUsed = createLastUsed();
  const clock = { now: () => new Date() };
  const broker = startBrokerSide({
    nats: { url: nats.url },
    replicas: 1,
    holder: randomUUID(),
    sql,
    directory,
    signer: testSigner,
    lastUsed,
    plans,
    now: () => clock.now(),
    newId: uuidv7,
    metrics,
    logger,
  });
  const writer = createWriter({
    sql,
    newId: uuidv7,
    wakeRelay: broker.wakeRelay,
    effects: broker.effects,
  });
  const filling =
    options.fillsEnvironments === false
      ? undefined
      : startFilling({ sql, writer, now: () => clock.now(), newId: uuidv7, logger });
  const app = createManagementApp({
    sql,
    writer,
    findKey: createKeyLookup({ sql, directory, directoryIsCurrent: broker.directoryIsCurrent }),
    operatorToken,
    keyLimits: createKeyLimits(options.keyRate ?? manyRequests),
    lastUsed,
    plans,
    now: () => clock.now(),
    newId: uuidv7,
    trustedProxies: [],
    checkAnswers: true,
    metrics,
    logger,
  });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  await eventually(() => broker.directoryIsCurrent(), { because: "management follows the keys" });
  const stop = once(async () => {
    await app.close();
    await filling?.stop();
    await broker.stop();
    // As main does: what was broken off by a test is not waited for.
    await sql.end({ timeout: 1 });
  });
  return {
    url,
    backends,
    natsUrl: nats.url,
    adminUrl: database.adminUrl,
    sql,
    writer,
    clock,
    directory,
    metrics,
    call: (path: string, options?: CallOptions) => call(url + path, options),
    /** Ends management alone. */
    stop,
    close: async () => {
      await stop();
      await Promise.all([database.drop(), nats.stop()]);
    },
  };
}

/** More than any test sends. */
const manyRequests = { requestsPerSecond: 1_000_000, burst: 1_000_000 };

async function openBackends(): Promise<Backends> {
  const [database, nats] = await Promise.all([createTestDatabase(), startTestNats()]);
  return { database, nats };
}

export type Management = Awaited<ReturnType<typeof openManagement>>;

/** A project with two environments and a user, written straight into the tables. */
export async function seedProject({ sql, directory }: Management) {
  const { keyEntries, ...tenant } = tenantInSnapshot();
  const { organizationId, projectId, userId, environmentId, otherEnvironmentId } = tenant;
  const now = new Date();
  await sql`insert into organizations
    values (${organizationId}, 'Acme', 'pro', 1, ${now}, ${now}, ${sql.json(defaultPlans.pro ?? null)})`;
  await sql`insert into users values (${userId}, ${organizationId}, 'ada@example.com', 'Ada', ${now})`;
  await sql`insert into projects values (${projectId}, ${organizationId}, 'Web', ${now})`;
  await sql`insert into environments values
    (${environmentId}, ${projectId}, 'production', ${now}),
    (${otherEnvironmentId}, ${projectId}, 'staging', ${now})`;
  for (const entry of keyEntries) {
    const key: KeyEntry = JSON.parse(await payloadOf(entry));
    await sql`
      insert into api_keys (id, secret_sha256, kind, name, environment_id, user_id,
        environment_only, version, created_at)
      values (${key.key_id}, ${key.secret_sha256}, ${key.key_kind}, 'seeded', ${environmentId},
        ${userId}, ${key.environment_only}, 1, now())`;
    directory.put(key.key_id, key);
  }
  return tenant;
}
