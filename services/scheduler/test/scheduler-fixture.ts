import { createKeyDirectory, createKeyLimits, createLastUsed } from "@halyard/api-keys";
import type { FlagEntry, SnapshotEntry } from "@halyard/contracts";
import {
  createCallers,
  createMemberAuthentication,
  createPeopleDirectory,
  createPlaces,
} from "@halyard/people";
import { connectPostgres } from "@halyard/postgres";
import { createMetrics } from "@halyard/service";
import { createDeletions } from "@halyard/snapshot";
import {
  type CallOptions,
  call,
  connectAsSuperuser,
  createTestDatabase,
  eventually,
  flagInSnapshot,
  keyInSnapshot,
  natsLogin,
  once,
  openSnapshotBucket,
  startTestNats,
  stepClock,
  type TenantIds,
  tenantInSnapshot,
  testMessageSigner,
  testMessageVerifier,
  testSignatures,
} from "@halyard/testing";
import { pino } from "pino";
import { v7 as uuidv7 } from "uuid";
import { createSchedulerApp } from "../src/app.ts";
import { createFlagDirectory } from "../src/directory/flag-directory.ts";
import { createScheduleChanges } from "../src/schedules/schedule-changes.ts";
import { startWorkers } from "../src/workers.ts";

/**
 * Opens a scheduler for a test file. Its replicas run in this process, composed as in `main.ts`, over the test
 * file's own database and NATS server. They use the database's clock, which the test can set. Nothing consumes
 * due changes unless the test starts a fake management.
 */
export async function openScheduler() {
  const [database, nats] = await Promise.all([createTestDatabase(), startTestNats()]);
  const admin = connectAsSuperuser(database.adminUrl, "scheduler");
  const bucket = await openSnapshotBucket(nats.url);
  const replicas: Awaited<ReturnType<typeof composeReplica>>[] = [];
  let aheadMs = 0;
  const nowMs = () => Date.now() + aheadMs;
  await bucket.rewrite([]);

  /** Starts a replica. `timeoutMs` is the maximum wait for a new flag. */
  async function startReplica(options: ReplicaOptions = {}) {
    const replica = await composeReplica({
      ...{ postgresUrl: database.runtimeUrls.scheduler, natsUrl: nats.url },
      ...{ ...options, nowMs },
    });
    replicas.push(replica);
    return replica;
  }

  return {
    natsUrl: nats.url,
    postgresUrl: database.runtimeUrls.scheduler,
    bucket,
    /** A superuser's connection to the scheduler's schema. */
    admin,
    startReplica,
    /** Sets the clock of all replicas to the real time plus `byMs`, which may be negative. */
    async stepClock(byMs: number) {
      await stepClock(admin, "scheduler", byMs);
      aheadMs = byMs;
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

type ReplicaOptions = { timeoutMs?: number };

async function composeReplica({
  postgresUrl,
  natsUrl,
  nowMs,
  ...options
}: ReplicaOptions & { postgresUrl: string; natsUrl: string; nowMs: () => number }) {
  const logger = pino({ level: process.env.TEST_LOG_LEVEL ?? "silent" });
  const sql = connectPostgres({ url: postgresUrl, name: "test", maxConnections: 10, logger });
  const metrics = createMetrics({ service: "scheduler" });
  const keys = createKeyDirectory(testSignatures());
  const people = createPeopleDirectory();
  const places = createPlaces();
  const flags = createFlagDirectory({ now: Date.now, hasEnded: keys.hasEnded, ...options });
  const lastUsed = createLastUsed();
  const workers = startWorkers({
    nats: natsLogin("scheduler", natsUrl),
    sql,
    keys,
    flags,
    lastUsed,
    sign: testMessageSigner("scheduler"),
    verify: testMessageVerifier,
    ...{ people, places, signatures: testSignatures() },
    deletions: createDeletions(),
    sweep: { nowMs, intervalMs: 50 },
    metrics,
    logger,
  });
  const app = createSchedulerApp({
    sql,
    changes: createScheduleChanges({
      sql,
      newId: (at) => uuidv7({ msecs: at.getTime() }),
      monotonicMs: () => performance.now(),
      onSet: workers.onSet,
    }),
    findFlag: flags.find,
    findProtected: places.findProtected,
    hasEnded: keys.hasEnded,
    authenticate: createMemberAuthentication({
      verify: keys.verify,
      callers: createCallers({
        people: { ...people, places },
        publicUrl: new URL("http://localhost:8080"),
        nowMs: Date.now,
      }),
      limits: createKeyLimits({ requestsPerSecond: 1_000_000, burst: 1_000_000 }),
      lastUsed,
      nowMs: Date.now,
    }),
    trustedProxies: [],
    checkAnswers: true,
    metrics,
    logger,
  });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  await eventually(workers.isLoaded, {
    because: "the scheduler follows the snapshot",
  });
  return {
    url,
    sql,
    people,
    places,
    metrics,
    hasFlag: (scope: { flagId: string; environmentId: string }) =>
      flags.statusOf(scope) === "exists",
    hasKey: (key: string) => keys.verify(key, Date.now()) !== undefined,
    call: (path: string, options?: CallOptions) => call(url + path, options),
    stop: once(async () => {
      await app.close();
      await workers.stop();
      await sql.end();
    }),
  };
}

/** Creates a tenant with snapshot entries and a factory for its flags. */
export function makeTenant() {
  const { keyEntries, ...tenant } = tenantInSnapshot();
  const colleagueId = uuidv7();
  const colleague = keyInSnapshot(tenant, { user_id: colleagueId });
  return {
    ...tenant,
    colleagueId,
    /** A server key of another user. */
    colleagueKey: colleague.text,
    entries: [...keyEntries, colleague.entry],
    /** Creates a flag in one of the tenant's environments. */
    flag: (fields: Partial<FlagEntry> = {}) => makeFlag(tenant, fields),
  };
}

export type Tenant = ReturnType<typeof makeTenant>;

function makeFlag(ids: TenantIds, fields: Partial<FlagEntry>) {
  const entry = flagInSnapshot(ids, fields);
  const { flagId, environmentId } = entry.address;
  const deleted: SnapshotEntry = {
    address: entry.address,
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
