import { randomBytes } from "node:crypto";
import { createKeyDirectory, createKeyLimits, createLastUsed, makeApiKey } from "@halyard/api-keys";
import type { FlagEntry, KeyEntry } from "@halyard/contracts";
import type { SnapshotEntry } from "@halyard/jetstream";
import { connectPostgres } from "@halyard/postgres";
import { createMetrics } from "@halyard/service";
import {
  type CallOptions,
  call,
  createTestDatabase,
  eventually,
  openSnapshotBucket,
  startTestNats,
} from "@halyard/testing";
import { pino } from "pino";
import postgres from "postgres";
import { v7 as uuidv7 } from "uuid";
import { createSchedulerApp } from "../src/app.ts";
import { startBrokerSide } from "../src/broker-side.ts";
import { createFlagDirectory } from "../src/directory/flag-directory.ts";
import { createScheduleChanges } from "../src/schedules/schedule-changes.ts";

/**
 * The scheduler as its main composes it, in this process, any number of replicas of it, over a
 * database and a NATS server of the test file's own. The clock is the database's, and the test can set
 * it. Nobody is there in management's place unless a test puts somebody there.
 */
export async function openScheduler() {
  const [database, nats] = await Promise.all([createTestDatabase(), startTestNats()]);
  const admin = postgres(database.adminUrl, {
    max: 4,
    connection: { search_path: "scheduler" },
    onnotice: () => undefined,
  });
  const bucket = await openSnapshotBucket(nats.url);
  const replicas: Awaited<ReturnType<typeof composeReplica>>[] = [];
  await bucket.rewrite([]);

  async function startReplica() {
    const replica = await composeReplica(database.runtimeUrls.scheduler, nats.url);
    replicas.push(replica);
    return replica;
  }

  return {
    natsUrl: nats.url,
    postgresUrl: database.runtimeUrls.scheduler,
    bucket,
    /** As a superuser, in the scheduler's schema. */
    admin,
    startReplica,
    /** Sets the clock of all replicas, forwards or backwards from what it really is. */
    async stepClock(byMs: number) {
      await admin.unsafe(
        `create or replace function present_time() returns timestamptz language sql volatile
         as 'select clock_timestamp() + interval ''${byMs} milliseconds'''`,
      );
    },
    async close() {
      await Promise.all(replicas.map((replica) => replica.stop()));
      await bucket.close();
      await admin.end();
      await Promise.all([database.drop(), nats.stop()]);
    },
  };
}

export type Scheduler = Awaited<ReturnType<typeof openScheduler>>;
export type Replica = Awaited<ReturnType<Scheduler["startReplica"]>>;

async function composeReplica(postgresUrl: string, natsUrl: string) {
  const logger = pino({ level: process.env.TEST_LOG_LEVEL ?? "silent" });
  const sql = connectPostgres({ url: postgresUrl, name: "test", maxConnections: 10, logger });
  const metrics = createMetrics({ service: "scheduler" });
  const keys = createKeyDirectory();
  const flags = createFlagDirectory({ now: Date.now });
  const lastUsed = createLastUsed();
  const broker = startBrokerSide({
    natsUrl,
    replicas: 1,
    sql,
    keys,
    flags,
    lastUsed,
    metrics,
    logger,
  });
  const app = createSchedulerApp({
    sql,
    changes: createScheduleChanges({
      sql,
      newId: (at) => uuidv7({ msecs: at.getTime() }),
      monotonicMs: () => performance.now(),
      onSet: broker.onSet,
    }),
    findFlag: flags.find,
    verifyKey: keys.verify,
    keyLimits: createKeyLimits({ requestsPerSecond: 1_000_000, burst: 1_000_000 }),
    lastUsed,
    now: Date.now,
    trustedProxies: [],
    checkAnswers: true,
    metrics,
    logger,
  });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  await eventually(() => broker.knowsFlags(), { because: "the scheduler follows the snapshot" });
  return {
    url,
    sql,
    metrics,
    knowsFlag: (place: { flagId: string; environmentId: string }) =>
      flags.standing(place) === "exists",
    knowsKey: (key: string) => keys.verify(key, Date.now()) !== undefined,
    call: (path: string, options?: CallOptions) => call(url + path, options),
    stop: once(async () => {
      await app.close();
      await broker.stop();
      await sql.end();
    }),
  };
}

/** A replica that a test has stopped is not stopped again at the end. */
function once(work: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined;
  return () => {
    done ??= work();
    return done;
  };
}

/** A tenant's ids and keys, and the entries by which the snapshot tells of them. */
export function makeTenant() {
  const ids = {
    organizationId: uuidv7(),
    projectId: uuidv7(),
    environmentId: uuidv7(),
    otherEnvironmentId: uuidv7(),
    userId: uuidv7(),
    colleagueId: uuidv7(),
  };
  const server = makeKey(ids, { key_kind: "server" });
  const client = makeKey(ids, { key_kind: "client" });
  const colleague = makeKey(ids, { user_id: ids.colleagueId });
  const bound = makeKey(ids, { key_kind: "server", environment_only: true });
  return {
    ...ids,
    serverKey: server.text,
    clientKey: client.text,
    /** Another user's server key. */
    colleagueKey: colleague.text,
    environmentOnlyKey: bound.text,
    entries: [server.entry, client.entry, colleague.entry, bound.entry],
    /** A flag in one of the tenant's environments. */
    flag: (fields: Partial<FlagEntry> = {}) => makeFlag(ids, fields),
  };
}

export type Tenant = ReturnType<typeof makeTenant>;
type Ids = Pick<Tenant, "organizationId" | "projectId" | "environmentId" | "userId">;

function makeKey(ids: Ids, fields: Partial<KeyEntry>): { text: string; entry: SnapshotEntry } {
  const made = makeApiKey(fields.key_kind ?? "server", randomBytes);
  return {
    text: made.key,
    entry: {
      address: { kind: "key", organizationId: ids.organizationId, keyId: made.id },
      value: {
        kind: "key",
        key_id: made.id,
        secret_sha256: made.secretSha256,
        key_kind: "server",
        organization_id: ids.organizationId,
        project_id: ids.projectId,
        environment_id: ids.environmentId,
        user_id: ids.userId,
        environment_only: false,
        expires_at: null,
        version: 1,
        committed_at: new Date().toISOString(),
        ...fields,
      },
    },
  };
}

function makeFlag(ids: Ids, fields: Partial<FlagEntry>) {
  const flagId = fields.flag_id ?? uuidv7();
  const environmentId = fields.environment_id ?? ids.environmentId;
  const address = {
    kind: "flag",
    organizationId: ids.organizationId,
    environmentId,
    flagId,
  } as const;
  const entry: SnapshotEntry = {
    address,
    value: {
      kind: "flag",
      organization_id: ids.organizationId,
      project_id: ids.projectId,
      environment_id: environmentId,
      flag_id: flagId,
      key: `flag-${flagId}`,
      enabled: false,
      rollout_percentage: 100,
      targeting_rules: [],
      version: 1,
      committed_at: new Date().toISOString(),
      ...fields,
    },
  };
  const deleted: SnapshotEntry = {
    address,
    value: { deleted: true, version: 2, committed_at: new Date().toISOString() },
  };
  return {
    flagId,
    environmentId,
    path: `/api/v1/flags/${flagId}/environments/${environmentId}/schedule`,
    entry,
    deleted,
  };
}
