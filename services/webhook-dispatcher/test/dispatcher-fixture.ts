import { randomBytes } from "node:crypto";
import { Writable } from "node:stream";
import { createKeyDirectory, createKeyLimits, createLastUsed } from "@halyard/api-keys";
import type { EventName } from "@halyard/contracts";
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
  deletedProjectInSnapshot,
  eventually,
  keyInSnapshot,
  natsLogin,
  once,
  openSnapshotBucket,
  startReceiver,
  startTestNats,
  tenantInSnapshot,
  testMessageSigner,
  testMessageVerifier,
  testSignatures,
} from "@halyard/testing";
import { pino } from "pino";
import { v7 as uuidv7 } from "uuid";
import { createWebhookApp } from "../src/app.ts";
import { createSecretBox, readSecretKeys } from "../src/secrets/secret-box.ts";
import { createSend } from "../src/sending/send.ts";
import type { TargetRules } from "../src/targets/target.ts";
import { createWebhookTests, testPayload } from "../src/webhooks/webhook-tests.ts";
import { startWorkers } from "../src/workers.ts";

/** The rules of a development setup. The tests' receiver listens on loopback. */
const privateTargets: TargetRules = { httpsOnly: false, allowPrivate: true };

/** Limits that differ from the defaults. */
export const webhooksPerProject = 90;
export const testsPerOrganization = 4;

type ReplicaOptions = {
  rules?: TargetRules;
  /** In the format of `WEBHOOK_SECRET_KEYS`. */
  secretKeys?: string;
};

/**
 * Starts a database and a NATS server for the test file. `startReplica` composes the dispatcher's HTTP API in this
 * process, as `main.ts` does. No dispatcher runs, so deliveries stay as the test has inserted them.
 */
export async function openDispatcher() {
  const [database, nats, receiver] = await Promise.all([
    createTestDatabase(),
    startTestNats(),
    startReceiver(),
  ]);
  const admin = connectAsSuperuser(database.adminUrl, "webhooks");
  const bucket = await openSnapshotBucket(nats.url);
  const replicas: Replica[] = [];
  let sweepNowMs = Date.now();
  await bucket.rewrite([]);

  async function startReplica(options: ReplicaOptions = {}) {
    const replica = await composeReplica({
      ...{ ...options, postgresUrl: database.runtimeUrls.webhooks, natsUrl: nats.url },
      sweepNowMs: () => sweepNowMs,
    });
    replicas.push(replica);
    return replica;
  }

  return {
    /** A connection as superuser, with the dispatcher's schema. */
    admin,
    receiver,
    natsUrl: nats.url,
    postgresUrl: database.runtimeUrls.webhooks,
    startReplica,
    /** Adds a tenant to the snapshot, and waits until these replicas accept its keys. */
    async newTenant(...known: Replica[]) {
      const tenant = makeTenant();
      await bucket.put(...tenant.entries);
      for (const replica of known) await eventually(() => replica.hasKeysOf(tenant));
      return tenant;
    },
    /** Deletes the project of a tenant in the snapshot. */
    deleteProject: (tenant: Tenant) => bucket.put(...deletedProjectInSnapshot(tenant)),
    /** Advances the clock of the sweep. */
    advanceSweep(byMs: number) {
      sweepNowMs += byMs;
    },
    async close() {
      // Closing the receiver ends all requests that wait for it.
      await receiver.close();
      await Promise.all(replicas.map((replica) => replica.stop()));
      await bucket.close();
      await admin.end();
      await Promise.all([database.drop(), nats.stop()]);
    },
  };
}

type Dispatcher = Awaited<ReturnType<typeof openDispatcher>>;
export type Replica = Awaited<ReturnType<typeof composeReplica>>;

async function composeReplica({
  postgresUrl,
  natsUrl,
  sweepNowMs,
  ...options
}: ReplicaOptions & { postgresUrl: string; natsUrl: string; sweepNowMs: () => number }) {
  const { rules = privateTargets } = options;
  const log = createLog();
  const { logger } = log;
  const sql = connectPostgres({ url: postgresUrl, name: "test", maxConnections: 10, logger });
  const keys = createKeyDirectory(testSignatures());
  const people = createPeopleDirectory();
  const places = createPlaces();
  const lastUsed = createLastUsed();
  const secrets = createSecretBox({ keys: keysOf(options.secretKeys), randomBytes });
  const sender = createSend({ rules });
  const metrics = createMetrics({ service: "webhook-dispatcher" });
  const ids = { newId: uuidv7, now: () => new Date() };
  const shared = { sql, secrets, metrics, logger, send: sender.send, ...ids };
  const workers = startWorkers({
    ...shared,
    nats: natsLogin("webhook-dispatcher", natsUrl),
    keys,
    ...{ people, places, signatures: testSignatures() },
    deletions: createDeletions(),
    sweep: { nowMs: sweepNowMs, intervalMs: 50 },
    lastUsed,
    sign: testMessageSigner("webhook-dispatcher"),
    verify: testMessageVerifier,
    onDeliveries: () => undefined,
  });
  const tests = createWebhookTests({ ...shared, maxPerOrganization: testsPerOrganization });
  let wokenTimes = 0;
  const app = createWebhookApp({
    ...shared,
    rules,
    tests,
    webhooksPerProject,
    onDue: () => {
      wokenTimes += 1;
    },
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
  });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  await eventually(workers.isLoaded, {
    because: "the dispatcher follows the snapshot",
  });
  return {
    ...shared,
    url,
    tests,
    log: log.text,
    wokenTimes: () => wokenTimes,
    hasKeysOf: (tenant: Tenant) =>
      [tenant.serverKey, tenant.otherServerKey, tenant.clientKey, tenant.environmentOnlyKey].every(
        (key) => keys.verify(key, Date.now()) !== undefined,
      ),
    call: (path: string, callOptions?: CallOptions) => call(url + path, callOptions),
    stop: once(async () => {
      await app.close();
      await workers.stop();
      await sender.close();
      await sql.end();
    }),
  };
}

/** Records all log lines of a replica at all levels, so that tests can search them for secrets. */
function createLog() {
  const lines: string[] = [];
  const destination = new Writable({
    write(line: Buffer, _encoding, done) {
      lines.push(line.toString());
      done();
    },
  });
  return { logger: pino({ level: "trace" }, destination), text: () => lines.join("") };
}

export const secretKey = (id: string, byte: number) =>
  `${id}:${Buffer.alloc(32, byte).toString("base64")}`;

function keysOf(text = secretKey("first", 1)) {
  const keys = readSecretKeys(text);
  if (keys === undefined) throw new Error("Invalid keys for secrets");
  return keys;
}

/** Creates a tenant with two server keys, and its entries for the snapshot. */
function makeTenant() {
  const { keyEntries, ...tenant } = tenantInSnapshot();
  const otherServer = keyInSnapshot(tenant);
  return {
    ...tenant,
    path: `/api/v1/projects/${tenant.projectId}/webhooks`,
    otherServerKey: otherServer.text,
    entries: [...keyEntries, otherServer.entry],
  };
}

type Tenant = ReturnType<typeof makeTenant>;

/** Returns whether a statement waits for a lock. */
export async function waitsForLock({ admin }: Dispatcher): Promise<boolean> {
  const [waiting] = await admin`
    select from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`;
  return waiting !== undefined;
}

export type DeliveryRow = {
  id: string;
  webhook_id: string;
  organization_id: string;
  project_id: string;
  event_id: string;
  event: EventName;
  payload: string;
  status: string;
  attempts_made: number;
  redelivery: boolean;
  created_at: Date;
  next_attempt_at: Date | null;
  delivered_at: Date | null;
  finished_at: Date | null;
  claimed_by: string | null;
};

/** Returns the row of a delivery in a given status, for insertion without an event. */
export function makeDelivery(
  tenant: Tenant,
  webhookId: string,
  status: string,
  fields: Partial<DeliveryRow> = {},
): DeliveryRow {
  const now = new Date();
  const inAnHour = new Date(now.getTime() + 3_600_000);
  return {
    id: uuidv7(),
    webhook_id: webhookId,
    organization_id: tenant.organizationId,
    project_id: tenant.projectId,
    event_id: uuidv7(),
    event: "flag.toggled",
    payload: JSON.stringify(testPayload(["flag.toggled"], { userId: tenant.userId, at: now })),
    status,
    attempts_made: ["pending", "delivering"].includes(status) ? 0 : 1,
    redelivery: false,
    created_at: now,
    next_attempt_at: ["pending", "retrying", "delivering"].includes(status) ? inAnHour : null,
    delivered_at: status === "delivered" ? now : null,
    finished_at: ["delivered", "failed", "cancelled"].includes(status) ? now : null,
    claimed_by: status === "delivering" ? uuidv7() : null,
    ...fields,
  };
}
