import { randomBytes, randomUUID } from "node:crypto";
import { createKeyDirectory, makeApiKey } from "@halyard/api-keys";
import { defaultPlans } from "@halyard/contracts";
import { connectPostgres, type Sql } from "@halyard/postgres";
import { createMetrics } from "@halyard/service";
import {
  type CallOptions,
  call,
  createTestDatabase,
  eventually,
  startTestNats,
} from "@halyard/testing";
import { pino } from "pino";
import { v7 as uuidv7 } from "uuid";
import { createKeyLookup } from "../src/access/key-lookup.ts";
import { createManagementApp } from "../src/app.ts";
import { startBrokerSide } from "../src/broker-side.ts";
import { createPublications } from "../src/outbox/publications.ts";
import { createWriter } from "../src/outbox/write.ts";

/**
 * Management as its main composes it, in this process, over a database and a NATS server of the test
 * file's own. The clock is the test's.
 */
export const operatorToken = "an operator token for the tests only";

export async function openManagement() {
  const [database, nats] = await Promise.all([createTestDatabase(), startTestNats()]);
  const logger = pino({ level: process.env.TEST_LOG_LEVEL ?? "silent" });
  const sql = connectPostgres({
    url: database.managementUrl,
    name: "test",
    maxConnections: 10,
    logger,
  });
  const metrics = createMetrics({ service: "management" });
  const publications = createPublications();
  const directory = createKeyDirectory();
  const broker = startBrokerSide({
    natsUrl: nats.url,
    replicas: 1,
    holder: randomUUID(),
    sql,
    publications,
    directory,
    plans: defaultPlans,
    metrics,
    logger,
  });
  const clock = { now: () => new Date() };
  const app = createManagementApp({
    sql,
    writer: createWriter({
      sql,
      publications,
      newId: uuidv7,
      wakeRelay: broker.wakeRelay,
      isInEffect: broker.isInEffect,
    }),
    findKey: createKeyLookup({ sql, directory, directoryIsCurrent: broker.directoryIsCurrent }),
    operatorToken,
    plans: defaultPlans,
    now: () => clock.now(),
    newId: uuidv7,
    trustedProxies: [],
    checkAnswers: true,
    metrics,
    logger,
  });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  await eventually(() => broker.directoryIsCurrent(), { because: "management follows the keys" });
  return {
    url,
    natsUrl: nats.url,
    adminUrl: database.adminUrl,
    sql,
    clock,
    directory,
    call: (path: string, options?: CallOptions) => call(url + path, options),
    close: async () => {
      await app.close();
      await broker.stop();
      await sql.end();
      await Promise.all([database.drop(), nats.stop()]);
    },
  };
}

export type Management = Awaited<ReturnType<typeof openManagement>>;

/** A project with two environments and a user, written straight into the tables. */
export async function seedProject(management: Management) {
  const { sql, directory } = management;
  const ids = {
    organizationId: uuidv7(),
    projectId: uuidv7(),
    userId: uuidv7(),
    environmentId: uuidv7(),
    otherEnvironmentId: uuidv7(),
  };
  const now = new Date();
  await sql`insert into organizations values (${ids.organizationId}, 'Acme', 'pro', 1, ${now}, ${now})`;
  await sql`insert into users values (${ids.userId}, ${ids.organizationId}, 'ada@example.com', 'Ada', ${now})`;
  await sql`insert into projects values (${ids.projectId}, ${ids.organizationId}, 'Web', ${now})`;
  await sql`insert into environments values
    (${ids.environmentId}, ${ids.projectId}, 'production', ${now}),
    (${ids.otherEnvironmentId}, ${ids.projectId}, 'staging', ${now})`;
  const server = await seedKey(sql, directory, ids, { kind: "server" });
  const client = await seedKey(sql, directory, ids, { kind: "client" });
  const bound = await seedKey(sql, directory, ids, { kind: "server", environmentOnly: true });
  return { ...ids, serverKey: server, clientKey: client, environmentOnlyKey: bound };
}

async function seedKey(
  sql: Sql,
  directory: Management["directory"],
  ids: { organizationId: string; projectId: string; environmentId: string; userId: string },
  options: { kind: "client" | "server"; environmentOnly?: boolean },
): Promise<string> {
  const made = makeApiKey(options.kind, randomBytes);
  const environmentOnly = options.environmentOnly ?? false;
  await sql`
    insert into api_keys (id, secret_sha256, kind, name, environment_id, user_id,
      environment_only, version, created_at)
    values (${made.id}, ${made.secretSha256}, ${options.kind}, 'seeded', ${ids.environmentId},
      ${ids.userId}, ${environmentOnly}, 1, now())`;
  directory.apply(made.id, {
    kind: "key",
    key_id: made.id,
    secret_sha256: made.secretSha256,
    key_kind: options.kind,
    organization_id: ids.organizationId,
    project_id: ids.projectId,
    environment_id: ids.environmentId,
    user_id: ids.userId,
    environment_only: environmentOnly,
    expires_at: null,
    version: 1,
    committed_at: new Date().toISOString(),
  });
  return made.key;
}
