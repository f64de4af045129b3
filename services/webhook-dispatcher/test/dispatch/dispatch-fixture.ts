import { randomBytes } from "node:crypto";
import { createKeyDirectory, createLastUsed } from "@halyard/api-keys";
import {
  type AudienceEvent,
  type ChangeRequestEvent,
  type DomainEvent,
  EventName,
  type FlagEvent,
  flagEventsStream,
  inboxPrefixOf,
  type NatsUser,
  type ProtectionEvent,
  quotaBucket,
  scheduleStream,
} from "@halyard/contracts";
import { ensureFlagEvents, ensureQuota, ensureSchedule, publishSigned } from "@halyard/jetstream";
import { createPeopleDirectory, createPlaces } from "@halyard/people";
import { connectPostgres } from "@halyard/postgres";
import { createMetrics } from "@halyard/service";
import { createDeletions } from "@halyard/snapshot";
import {
  connectAsSuperuser,
  createTestDatabase,
  deletedProjectInSnapshot,
  eventually,
  natsLogin,
  once,
  openSnapshotBucket,
  type Receiver,
  startReceiver,
  startTestNats,
  testMessageSigner,
  testMessageVerifier,
  testSignatures,
} from "@halyard/testing";
import { AckPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, headers } from "@nats-io/transport-node";
import { pino } from "pino";
import type postgres from "postgres";
import { v7 as uuidv7 } from "uuid";
import { startDispatch } from "../../src/dispatch/dispatcher.ts";
import { defaultBounds } from "../../src/dispatch/plan-claims.ts";
import { createSecretBox, readSecretKeys } from "../../src/secrets/secret-box.ts";
import { createSend } from "../../src/sending/send.ts";
import { startWorkers } from "../../src/workers.ts";

/**
 * Starts a database, a NATS server and a receiver for the test file. `startReplica` starts the consumer of events and
 * the dispatcher in this process, without the HTTP API. Tests insert webhooks directly into the database.
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
    /** A connection as superuser, with the dispatcher's schema. */
    admin,
    receiver,
    log,
    runtimeUrl: database.runtimeUrls.webhooks,
    async startReplica(options: ReplicaOptions = {}) {
      const replica = composeReplica(database.runtimeUrls.webhooks, nats.url, options);
      replicas.push(replica);
      await eventually(() => replica.workers.details().events === "consumed", {
        because: "the replica consumes events",
      });
      return replica;
    },
    ...webhooksIn(admin, receiver),
    /** Deletes the project of a webhook in the snapshot. */
    deleteProject: (webhook: TestWebhook) =>
      bucket.put(...deletedProjectInSnapshot({ ...webhook, environmentId: uuidv7(), userId: "" })),
    async close() {
      // Closing the receiver ends all requests that wait for it.
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
  /** Called before each attempt. The attempt waits for it. */
  beforeSend?: () => Promise<void>;
  monotonicMs?: () => number;
  claimTimeoutMs?: number;
};

const someKeys = () => {
  const keys = readSecretKeys(`first:${Buffer.alloc(32, 1).toString("base64")}`);
  if (keys === undefined) throw new Error("Invalid keys for secrets");
  return keys;
};
const secrets = createSecretBox({ keys: someKeys(), randomBytes });

function composeReplica(postgresUrl: string, natsUrl: string, options: ReplicaOptions) {
  const { plan = [100, 100, 100, 100, 100], beforeSend = async () => undefined } = options;
  const logger = pino({ level: process.env.TEST_LOG_LEVEL ?? "silent" });
  const sql = connectPostgres({ url: postgresUrl, name: "test", maxConnections: 10, logger });
  const metrics = createMetrics({ service: "webhook-dispatcher" });
  const deletions = createDeletions();
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
    ...{ people: createPeopleDirectory(), places: createPlaces(), signatures: testSignatures() },
    deletions,
    plan,
    random: () => 0,
    newId: uuidv7,
    now: () => new Date(),
    monotonicMs: options.monotonicMs ?? (() => performance.now()),
    bounds: defaultBounds,
    ...(options.claimTimeoutMs === undefined ? {} : { claimTimeoutMs: options.claimTimeoutMs }),
    metrics,
    logger,
  });
  const workers = startWorkers({
    nats: natsLogin("webhook-dispatcher", natsUrl),
    sql,
    keys: createKeyDirectory(testSignatures()),
    ...{ people: createPeopleDirectory(), places: createPlaces(), signatures: testSignatures() },
    deletions,
    sweep: { nowMs: Date.now },
    lastUsed: createLastUsed(),
    sign: testMessageSigner("webhook-dispatcher"),
    verify: testMessageVerifier,
    newId: uuidv7,
    onDeliveries: dispatch.wake,
    metrics,
    logger,
  });
  return {
    sql,
    metrics,
    workers,
    isDeleted: ({ organizationId, projectId }: TestWebhook) =>
      deletions.has({ kind: "project", organizationId, projectId }),
    wake: dispatch.wake,
    stop: once(async () => {
      await workers.stop();
      await dispatch.stop();
      await sender.close();
      await sql.end();
    }),
  };
}

/** Opens the stream of events. The test publishes events instead of management. */
async function openEventLog(natsUrl: string) {
  const connection = await connect({ servers: natsUrl });
  const manager = await jetstreamManager(connection);
  const client = jetstream(connection);
  await ensureFlagEvents(manager, 1);
  const publishText = (subject: string, payload: string) =>
    publishSigned(client, testMessageSigner("management"), { subject, payload });
  return {
    /** Publishes events as management does, but without the message id that removes duplicates. */
    async publish(...events: DomainEvent[]) {
      for (const event of events) await publishText(event.event, JSON.stringify(event));
    },
    publishText,
    /** Publishes an event with the signature of another service, of another event, or with none. */
    async publishForged(event: FlagEvent, signature: string | undefined) {
      const signed = headers();
      if (signature !== undefined) signed.set("Halyard-Signature", signature);
      await client.publish(event.event, JSON.stringify(event), { headers: signed });
    },
    /**
     * Stores an event in the bucket of quotas as usage-metering, and has a consumer of the user deliver it to the subject
     * of the event. Resolves when the event is in the stream.
     */
    async deliverFromBucket(user: "usage-metering" | "sdk-edge", event: FlagEvent) {
      await ensureQuota(manager, 1);
      const { subjectPrefix, streamName } = quotaBucket;
      const before = (await manager.streams.info(flagEventsStream.name)).state.last_seq;
      const subject = subjectPrefix + event.id;
      const writer = await connectAs("usage-metering", natsUrl);
      await jetstream(writer).publish(subject, JSON.stringify(event));
      const attacker = await connectAs(user, natsUrl);
      const attacking = await jetstreamManager(attacker, { checkAPI: false });
      await attacking.consumers.add(streamName, {
        ...{ name: event.id, deliver_subject: event.event, ack_policy: AckPolicy.None },
        // Edges may read the bucket only with this filter.
        ...(user === "sdk-edge" && { filter_subject: `${subjectPrefix}*` }),
      });
      await eventually(
        async () => (await manager.streams.info(flagEventsStream.name)).state.last_seq > before,
      );
      await Promise.all([writer.close(), attacker.close()]);
    },
    /**
     * Has the scheduler's own consumer deliver outcomes, which management has signed, to the subject of an event.
     * Resolves when so many are in the stream.
     */
    async deliverOutcomes(count: number) {
      await ensureSchedule(manager, 1);
      const { subject, consumer } = scheduleStream.resolved;
      const before = (await manager.streams.info(flagEventsStream.name)).state.last_seq;
      const attacker = await connectAs("scheduler", natsUrl);
      const attacking = await jetstreamManager(attacker, { checkAPI: false });
      await attacking.consumers.add(scheduleStream.name, {
        ...{ durable_name: consumer, deliver_subject: "flag.deleted", filter_subject: subject },
        ack_policy: AckPolicy.Explicit,
      });
      for (let sent = 0; sent < count; sent += 1) await publishText(subject, "{}");
      await eventually(
        async () =>
          (await manager.streams.info(flagEventsStream.name)).state.last_seq >= before + count,
      );
      await attacker.close();
    },
    /** Deletes the stream and creates it again, empty. */
    async createAgain() {
      await manager.streams.delete(flagEventsStream.name);
      await ensureFlagEvents(manager, 1);
    },
    /** Waits until all events of the stream are acknowledged. */
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

function connectAs(service: NatsUser, natsUrl: string) {
  const { url, user, password } = natsLogin(service, natsUrl);
  return connect({ servers: url, user, pass: password, inboxPrefix: inboxPrefixOf(service) });
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
  /** The webhook's path at the receiver. */
  path: string;
};

type DeliveryRow = {
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
    /** Returns the requests to the webhook's path. */
    received: ({ path }: TestWebhook) =>
      receiver.requests.filter((request) => request.path === path),
    /** Waits until the webhook's only delivery has this status. */
    deliveryWith: (webhook: TestWebhook, status: string) =>
      eventually(
        async () => {
          const [delivery] = await deliveriesTo(webhook);
          return delivery?.status === status && delivery;
        },
        { because: `the delivery is ${status}` },
      ),
    /** Waits until the webhook has `count` deliveries, all with this status. */
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
    /** Makes the claims of a webhook's deliveries expire now. */
    async expireClaims({ id }: { id: string }) {
      await admin`
        update deliveries set next_attempt_at = now()
        where webhook_id = ${id} and status = 'delivering'`;
      await admin`update lanes set due_at = now() where webhook_id = ${id}`;
    },
    /**
     * Inserts due deliveries without a wake-up, as after an outage. With `isFound: false` the lane is not due, so the
     * dispatcher does not find them.
     */
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

/** Returns an event in the format of management. */
export function makeAudienceEvent(
  fields: Partial<AudienceEvent> = {},
  webhook?: Pick<TestWebhook, "projectId" | "organizationId">,
): AudienceEvent {
  return {
    id: uuidv7(),
    event: "audience.updated",
    timestamp: new Date().toISOString(),
    version: 2,
    organization_id: webhook?.organizationId ?? uuidv7(),
    project_id: webhook?.projectId ?? uuidv7(),
    audience: { key: "beta", name: "Beta users", description: "" },
    change: "list",
    flags: ["new-checkout"],
    flags_total: 1,
    triggered_by: { id: uuidv7(), email: "ada@example.com" },
    cause: "manual",
    ...fields,
  };
}

export function makeChangeRequestEvent(
  fields: Partial<ChangeRequestEvent> = {},
  webhook?: Pick<TestWebhook, "projectId" | "organizationId">,
): ChangeRequestEvent {
  return {
    id: uuidv7(),
    event: "change_request.opened",
    timestamp: new Date().toISOString(),
    version: 1,
    organization_id: webhook?.organizationId ?? uuidv7(),
    project_id: webhook?.projectId ?? uuidv7(),
    change_request: {
      id: uuidv7(),
      title: "Checkout to half of the users",
      reason: "The error rate at 25 % is normal.",
      status: "open",
      summary: "checkout in production: 25 % → 50 %",
      environments: [{ id: uuidv7(), name: "production" }],
    },
    triggered_by: { id: uuidv7(), email: "ada@example.com" },
    cause: "manual",
    ...fields,
  };
}

export function makeProtectionEvent(
  fields: Partial<ProtectionEvent> = {},
  webhook?: Pick<TestWebhook, "projectId" | "organizationId">,
): ProtectionEvent {
  return {
    id: uuidv7(),
    event: "environment.protection_changed",
    timestamp: new Date().toISOString(),
    version: 2,
    organization_id: webhook?.organizationId ?? uuidv7(),
    project_id: webhook?.projectId ?? uuidv7(),
    environment: { id: uuidv7(), name: "production" },
    protected: { approvals: 2, self_approval: false, without_approval: ["off"] },
    protected_before: null,
    triggered_by: { id: uuidv7(), email: "ada@example.com" },
    cause: "manual",
    ...fields,
  };
}

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
