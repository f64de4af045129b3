import { randomBytes } from "node:crypto";
import { createKeyDirectory, createLastUsed } from "@halyard/api-keys";
import { EventName, type FlagEvent, flagEventsStream } from "@halyard/contracts";
import { ensureFlagEvents } from "@halyard/jetstream";
import { connectPostgres } from "@halyard/postgres";
import { createMetrics } from "@halyard/service";
import {
  connectAsSuperuser,
  createTestDatabase,
  eventually,
  natsLogin,
  once,
  openSnapshotBucket,
  type Receiver,
  startReceiver,
  startTestNats,
  testSignatures,
} from "@halyard/testing";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { pino } from "pino";
import type postgres from "postgres";
import { v7 as uuidv7 } from "uuid";
import { type ClaimTimes, defaultClaimTimes } from "../../src/dispatch/claim-store.ts";
import { startDispatch } from "../../src/dispatch/dispatcher.ts";
import { defaultBounds } from "../../src/dispatch/plan-claims.ts";
import { createSecretBox, readSecretKeys } from "../../src/secrets/secret-box.ts";
import { createSend } from "../../src/sending/send.ts";
import { startWorkers } from "../../src/workers.ts";

/**
 * The way from an event to a customer's system, without the HTTP side: any number of replicas in this
 * process, over a database, a NATS server and a receiver of the test file's own. Tests put webhooks
 * straight into the database.
 */
export async function openDispatch() {
  const [database, nats, receiver] = await Promise.all([
    createTestDatabase(),
    startTestNats(),
    startReceiver(),
  ]);
  const admin = connectAsSuperuser(database.adminUrl, "webhooks");
  const bucket = await openSnapshotBucket(nats.url);
  await bucket.rewrite([]);
  const log = await openEventLog(nats.url);
  const replicas: Replica[] = [];

  return {
    /** As a superuser, in the dispatcher's schema. */
    admin,
    receiver,
    log,
    runtimeUrl: database.runtimeUrls.webhooks,
    async startReplica(options: ReplicaOptions = {}) {
      const replica = composeReplica(database.runtimeUrls.webhooks, nats.url, options);
      replicas.push(replica);
      await eventually(() => replica.broker.details().events === "consumed", {
        because: "the replica consumes events",
      });
      return replica;
    },
    ...webhooksIn(admin, receiver),
    async close() {
      // Whatever still waits for the receiver ends with it.
      await receiver.close();
      await Promise.all(replicas.map((replica) => replica.stop()));
      await Promise.all([log.close(), bucket.close(), admin.end()]);
      await Promise.all([database.drop(), nats.stop()]);
    },
  };
}

export type Dispatch = Awaited<ReturnType<typeof openDispatch>>;
export type Replica = ReturnType<typeof composeReplica>;

type ReplicaOptions = {
  plan?: readonly number[];
  timeoutMs?: number;
  /** Is asked before each attempt is made. */
  beforeSend?: () => Promise<void>;
  monotonicMs?: () => number;
  claimTimes?: Partial<ClaimTimes>;
};

/** Looks come quickly, so that no test waits for as many as are usual a second apart. */
const claimTimes: ClaimTimes = { ...defaultClaimTimes, pollIntervalMs: 100 };

const someKeys = () => {
  const keys = readSecretKeys(`first:${Buffer.alloc(32, 1).toString("base64")}`);
  if (keys === undefined) throw new Error("These are no keys for secrets");
  return keys;
};
export const secrets = createSecretBox({ keys: someKeys(), randomBytes });

function composeReplica(postgresUrl: string, natsUrl: string, options: ReplicaOptions) {
  const { plan = [100, 100, 100, 100, 100], beforeSend = async () => undefined } = options;
  const logger = pino({ level: process.env.TEST_LOG_LEVEL ?? "silent" });
  const sql = connectPostgres({ url: postgresUrl, name: "test", maxConnections: 10, logger });
  const metrics = createMetrics({ service: "webhook-dispatcher" });
  const sender = createSend({
    rules: { httpsOnly: false, allowPrivate: true },
    ...(options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
  });
  const dispatch = startDispatch({
    sql,
    send: async (request) => {
      await beforeSend();
      return sender.send(request);
    },
    secrets,
    plan,
    random: () => 0,
    newId: uuidv7,
    now: () => new Date(),
    monotonicMs: options.monotonicMs ?? (() => performance.now()),
    bounds: defaultBounds,
    claimTimes: { ...claimTimes, ...options.claimTimes },
    metrics,
    logger,
  });
  const broker = startWorkers({
    nats: natsLogin("webhook-dispatcher", natsUrl),
    sql,
    keys: createKeyDirectory(testSignatures()),
    lastUsed: createLastUsed(),
    newId: uuidv7,
    onDeliveries: dispatch.wake,
    metrics,
    logger,
  });
  return {
    sql,
    metrics,
    broker,
    wake: dispatch.wake,
    stop: once(async () => {
      await broker.stop();
      await dispatch.stop();
      await sender.close();
      await sql.end();
    }),
  };
}

/** The log of events, written by a test in management's place. */
async function openEventLog(natsUrl: string) {
  const connection = await connect({ servers: natsUrl });
  const manager = await jetstreamManager(connection);
  const client = jetstream(connection);
  await ensureFlagEvents(manager, 1);
  return {
    /** As management does it, but for the id by which the broker drops repetitions. */
    async publish(...events: FlagEvent[]) {
      for (const event of events) await client.publish(event.event, JSON.stringify(event));
    },
    publishRaw: (subject: string, text: string) => client.publish(subject, text),
    /** Deletes the log and makes it anew, empty. */
    async createAgain() {
      await manager.streams.delete(flagEventsStream.name);
      await ensureFlagEvents(manager, 1);
    },
    /** Until every event of the log was taken. */
    async isConsumed() {
      await eventually(async () => {
        const { webhookConsumer, name } = flagEventsStream;
        const info = await manager.consumers.info(name, webhookConsumer);
        const stream = await manager.streams.info(name);
        return (
          info.num_pending === 0 &&
          info.num_ack_pending === 0 &&
          info.ack_floor.stream_seq === stream.state.last_seq
        );
      });
    },
    close: () => connection.close(),
  };
}

type NewWebhook = {
  projectId?: string;
  organizationId?: string;
  events?: readonly EventName[];
  enabled?: boolean;
  slow?: boolean;
  secret?: string;
};

export type TestWebhook = {
  id: string;
  projectId: string;
  organizationId: string;
  /** Its own path at the receiver. */
  path: string;
};

export type DeliveryRow = {
  id: string;
  webhook_id: string;
  event_id: string;
  status: string;
  attempts_made: number;
  next_attempt_at: Date | null;
  delivered_at: Date | null;
  finished_at: Date | null;
  claimed_by: string | null;
};

function webhooksIn(admin: postgres.Sql, receiver: Receiver) {
  const deliveriesTo = ({ id }: { id: string }) =>
    admin<DeliveryRow[]>`select * from deliveries where webhook_id = ${id} order by id`;

  return {
    deliveriesTo,
    async newWebhook(fields: NewWebhook = {}): Promise<TestWebhook> {
      const id = uuidv7();
      const { projectId = uuidv7(), organizationId = uuidv7(), enabled = true } = fields;
      const { events = EventName.options, secret } = fields;
      const path = `/${id}`;
      const sealed = secret === undefined ? undefined : secrets.seal(id, secret);
      await admin`
        insert into webhooks (id, organization_id, project_id, name, url, events, enabled, secret,
          secret_key_id, created_at, updated_at)
        values (${id}, ${organizationId}, ${projectId}, ${`Webhook ${id}`}, ${receiver.url + path},
          ${[...events]}, ${enabled}, ${sealed?.bytes ?? null}, ${sealed?.keyId ?? null}, now(),
          now())`;
      await admin`
        insert into lanes (webhook_id, organization_id, slow)
        values (${id}, ${organizationId}, ${fields.slow ?? false})`;
      return { id, projectId, organizationId, path };
    },
    /** What the receiver got on the webhook's path. */
    received: ({ path }: TestWebhook) =>
      receiver.requests.filter((request) => request.path === path),
    /** The webhook's only delivery, as soon as it is in this state. */
    deliveryWith: (webhook: TestWebhook, status: string) =>
      eventually(
        async () => {
          const [delivery] = await deliveriesTo(webhook);
          return delivery?.status === status && delivery;
        },
        { because: `the delivery is ${status}` },
      ),
    /** When all of so many deliveries have ended in this state. */
    async allEnded(webhook: TestWebhook, count: number, status = "delivered") {
      await eventually(
        async () => {
          const all = await deliveriesTo(webhook);
          return all.length === count && all.every((delivery) => delivery.status === status);
        },
        { because: `${count} deliveries are ${status}` },
      );
    },
    attemptsAt: ({ id }: { id: string }) =>
      admin`select * from attempts where delivery_id = ${id} order by id`,
    /** Deliveries that lie there due, as after an outage; nobody is told. Unless found, none is sent. */
    async putDeliveries(webhook: TestWebhook, count: number, { isFound = true } = {}) {
      await admin`
        insert into deliveries (id, webhook_id, organization_id, project_id, event_id, event, payload,
          status, created_at, next_attempt_at)
        select gen_random_uuid(), ${webhook.id}, ${webhook.organizationId}, ${webhook.projectId},
          gen_random_uuid(), 'flag.toggled', '{}', 'pending', now(), now()
        from generate_series(1, ${count})`;
      if (isFound) await admin`update lanes set due_at = now() where webhook_id = ${webhook.id}`;
    },
  };
}

/** An event as management writes it. */
export function makeEvent(
  fields: Partial<FlagEvent> = {},
  webhook?: Pick<TestWebhook, "projectId" | "organizationId">,
): FlagEvent {
  const state = { enabled: true, rollout_percentage: 50, targeting_rules: [] };
  return {
    id: uuidv7(),
    event: "flag.toggled",
    timestamp: new Date().toISOString(),
    version: 2,
    organization_id: webhook?.organizationId ?? uuidv7(),
    project_id: webhook?.projectId ?? uuidv7(),
    flag: {
      id: uuidv7(),
      key: "new-checkout",
      name: "New checkout",
      description: "The checkout of 2026",
      type: "release",
    },
    environment: { id: uuidv7(), name: "production" },
    state,
    state_before: { ...state, enabled: false },
    triggered_by: { id: uuidv7(), email: "ada@example.com" },
    cause: "manual",
    ...fields,
  };
}
