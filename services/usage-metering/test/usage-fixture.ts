import { randomUUID } from "node:crypto";
import { createKeyDirectory, createKeyLimits, createLastUsed } from "@halyard/api-keys";
import {
  type ConfiguredLimits,
  defaultPlans,
  type EntryOf,
  type EnvironmentUsage,
  type OrganizationEntry,
  type QuotaEntry,
  quotaBucket,
  type SnapshotEntry,
  type UsageRecorded,
  usageStream,
} from "@halyard/contracts";
import {
  createCallers,
  createMemberAuthentication,
  createPeopleDirectory,
  createPlaces,
} from "@halyard/people";
import { connectPostgres } from "@halyard/postgres";
import { createOpenStreams } from "@halyard/reports";
import { createMetrics } from "@halyard/service";
import { createDeletions } from "@halyard/snapshot";
import {
  type CallOptions,
  call,
  connectAsSuperuser,
  createTestDatabase,
  eventually,
  flagInSnapshot,
  natsLogin,
  once,
  openSnapshotBucket,
  startTestNats,
  stepClock,
  tenantInSnapshot,
  testSignatures,
} from "@halyard/testing";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { pino } from "pino";
import { v7 as uuidv7 } from "uuid";
import { createUsageApp } from "../src/app.ts";
import { createUsageMetrics } from "../src/counting/usage-metrics.ts";
import { createDirectory } from "../src/directory/directory.ts";
import { startWorkers } from "../src/workers.ts";

/**
 * Starts a database and a NATS server for a test file. Any number of replicas of usage metering run in this process,
 * composed as in main.ts. The clock is the database's, and the test can set it. The test publishes messages in place of
 * edges.
 */
export async function openMetering(backends: { database?: Database } = {}) {
  const [database, nats] = await Promise.all([
    backends.database ?? createTestDatabase(),
    startTestNats(),
  ]);
  const admin = connectAsSuperuser(database.adminUrl, "usage");
  const bucket = await openSnapshotBucket(nats.url);
  const connection = await connect({ servers: nats.url });
  const client = jetstream(connection);
  const manager = await jetstreamManager(connection);
  let aheadMs = 0;
  const nowMs = () => Date.now() + aheadMs;
  const replicas: Awaited<ReturnType<typeof composeReplica>>[] = [];
  await bucket.rewrite([]);

  async function startReplica(behavior: Behavior = {}) {
    const urls = { postgresUrl: database.runtimeUrls.usage, natsUrl: nats.url };
    const replica = await composeReplica({ ...urls, nowMs }, behavior);
    replicas.push(replica);
    return replica;
  }

  return {
    natsUrl: nats.url,
    bucket,
    connection,
    client,
    manager,
    /** The connection of a superuser, in the schema `usage`. */
    admin,
    startReplica,
    /** Publishes messages like an edge. A test may repeat a message. */
    async send(...messages: readonly UsageRecorded[]) {
      await Promise.all(
        messages.map((message) =>
          client.publish(usageStream.recorded.subject, JSON.stringify(message)),
        ),
      );
    },
    /** Waits until every message has left the queue. */
    async allProcessed() {
      await eventually(async () => {
        const { state } = await manager.streams.info(usageStream.name, {
          subjects_filter: usageStream.recorded.subject,
        });
        return Object.keys(state.subjects ?? {}).length === 0;
      });
    },
    /**
     * Returns the quota of an organization that edges read. It uses a direct get, because nats-server 2.9.10 crashes on
     * the other way of reading a message while the stream is being created.
     */
    async quotaOf(organizationId: string): Promise<QuotaEntry | undefined> {
      const message = await manager.direct.getMessage(quotaBucket.streamName, {
        last_by_subj: quotaBucket.subjectPrefix + organizationId,
      });
      return message === null ? undefined : message.json<QuotaEntry>();
    },
    /** Sets the clock of all replicas, forwards or backwards from the real time. */
    async stepClock(byMs: number) {
      await stepClock(admin, "usage", byMs);
      aheadMs = byMs;
    },
    /** Returns the requests of an organization in hours and days. */
    async countedFor(organizationId: string): Promise<number> {
      const [row] = await admin<[{ requests: string }]>`
        select coalesce(sum(requests), 0) as requests from (
          select requests from request_hours where organization_id = ${organizationId}
          union all select requests from request_days where organization_id = ${organizationId}
        ) as kept`;
      return Number(row.requests);
    },
    async close() {
      await Promise.all(replicas.map((replica) => replica.stop()));
      await Promise.all([bucket.close(), connection.close(), admin.end()]);
      await Promise.all([database.drop(), nats.stop()]);
    },
  };
}

type Database = Awaited<ReturnType<typeof createTestDatabase>>;
export type Metering = Awaited<ReturnType<typeof openMetering>>;
export type Replica = Awaited<ReturnType<Metering["startReplica"]>>;

type Behavior = { maxConnections?: number; compareIntervalMs?: number };

async function composeReplica(
  { postgresUrl, natsUrl, nowMs }: { postgresUrl: string; natsUrl: string; nowMs: () => number },
  { maxConnections = 10, compareIntervalMs }: Behavior,
) {
  const logger = pino({ level: process.env.TEST_LOG_LEVEL ?? "silent" });
  const sql = connectPostgres({ url: postgresUrl, name: "test", maxConnections, logger });
  const metrics = createMetrics({ service: "usage-metering" });
  const keys = createKeyDirectory(testSignatures());
  const people = createPeopleDirectory();
  const places = createPlaces();
  const directory = createDirectory();
  const openStreams = createOpenStreams();
  const lastUsed = createLastUsed();
  const workers = startWorkers({
    nats: natsLogin("usage-metering", natsUrl),
    sql,
    keys,
    directory,
    openStreams,
    ...{ people, places, signatures: testSignatures() },
    deletions: createDeletions(),
    sweep: { nowMs, intervalMs: 50 },
    lastUsed,
    usageMetrics: createUsageMetrics(metrics),
    compareIntervalMs,
    metrics,
    logger,
  });
  const app = createUsageApp({
    sql,
    directory,
    openStreams,
    authenticate: createMemberAuthentication({
      verify: keys.verify,
      callers: createCallers({
        people: { ...people, places },
        publicUrl: new URL("http://localhost:8080"),
        nowMs: Date.now,
      }),
      limits: createKeyLimits({ requestsPerSecond: 1_000, burst: 1_000 }),
      lastUsed,
      nowMs: Date.now,
    }),
    trustedProxies: [],
    checkAnswers: true,
    metrics,
    logger,
  });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  await eventually(() => workers.details().messages === "counted" && workers.isLoaded(), {
    because: "usage metering is ready",
  });
  return {
    url,
    sql,
    metrics,
    keys,
    directory,
    workers,
    openStreams,
    call: (path: string, options?: CallOptions) => call(url + path, options),
    stop: once(async () => {
      await app.close();
      await workers.stop();
      await sql.end();
    }),
  };
}

export const hourMs = 3_600_000;

/** Returns the beginning of the hour that is a number of hours before the current one. */
export function hourAgo(hours: number, nowMs = Date.now()): string {
  return new Date(nowMs - (nowMs % hourMs) - hours * hourMs).toISOString();
}

/** The default plans and more. */
export function plansEntry(
  more: Record<string, ConfiguredLimits> = {},
  version = 1,
): EntryOf<"plans"> {
  const limits = { ...defaultPlans, ...more };
  const stamp = { version, committed_at: new Date().toISOString() };
  return { address: { kind: "plans" }, value: { kind: "plans", limits, ...stamp } };
}

/** Creates an organization with a project, with its entries in the snapshot and its usage. */
export function makeTenant(fields: Partial<OrganizationEntry> = {}) {
  const { keyEntries, ...tenant } = tenantInSnapshot();
  const { organizationId, projectId, environmentId, otherEnvironmentId } = tenant;
  const stamp = { version: 1, committed_at: new Date().toISOString() };
  const environment = (environmentId: string, name: string): SnapshotEntry => ({
    address: { kind: "environment", organizationId, environmentId },
    value: {
      kind: "environment",
      organization_id: organizationId,
      project_id: projectId,
      environment_id: environmentId,
      name,
      ...stamp,
    },
  });
  const organization: EntryOf<"organization"> = {
    address: { kind: "organization", organizationId },
    value: {
      kind: "organization",
      organization_id: organizationId,
      name: "Organization",
      plan: "starter",
      project_count: 2,
      ...stamp,
      ...fields,
    },
  };
  return {
    ...tenant,
    organization,
    entries: [
      plansEntry(),
      organization,
      environment(environmentId, "production"),
      environment(otherEnvironmentId, "staging"),
      ...keyEntries,
    ],
    /** Creates a flag, with its entries in both environments. */
    flag: (flagId = uuidv7()) => ({
      flagId,
      entries: [environmentId, otherEnvironmentId].map((environment) =>
        flagInSnapshot(tenant, { flag_id: flagId, environment_id: environment }),
      ),
    }),
    /** Returns the usage of its first environment in the current hour. `usage` overrides fields. */
    used: (usage: Partial<EnvironmentUsage> = {}): EnvironmentUsage => ({
      hour: hourAgo(0),
      organization_id: organizationId,
      project_id: projectId,
      environment_id: environmentId,
      requests: { flags: 1 },
      bulk_answers: 0,
      bulk_answered_at: null,
      flags: [],
      ...usage,
    }),
  };
}

export type Tenant = ReturnType<typeof makeTenant>;

/** Creates one life of an edge, which numbers its messages. */
export function makeEdge(edge = randomUUID()) {
  let sequence = 0;
  return {
    edge,
    message(environments: EnvironmentUsage[], keys: UsageRecorded["keys"] = []): UsageRecorded {
      sequence += 1;
      return { edge, sequence, environments, keys };
    },
  };
}
