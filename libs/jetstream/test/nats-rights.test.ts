import { randomUUID } from "node:crypto";
import {
  auditStream,
  deadLetterStream,
  evaluationsStream,
  flagEventsStream,
  inboxPrefixOf,
  keysAndScopesFilter,
  natsUsers,
  peopleBucket,
  quotaBucket,
  type SigningService,
  scheduleStream,
  serviceNames,
  snapshotBucket,
  usageStream,
  writersOf,
} from "@halyard/contracts";
import {
  eventually,
  natsLogin,
  natsServerBinary,
  type RestartableNats,
  startRestartableNats,
  testMessageSigner,
  testMessageVerifier,
} from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, errors, type NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";
import { Registry } from "prom-client";
import {
  type Consumption,
  consumeQueue,
  createQueueMetrics,
  ensureSnapshot,
  ensureStreams,
  publishSigned,
} from "../src/index.ts";
import { messageHeaders } from "../src/message-headers.ts";
import { readStream } from "../src/read-stream.ts";

/**
 * Attacks by a process with the password of one NATS user. The rights are listed here a second time, so that an
 * extended right makes a test fail.
 */
const services = natsUsers.filter((user) => user !== "operator");
type Service = (typeof services)[number];

let nats: RestartableNats;
let operator: NatsConnection;
const connections = new Map<Service, NatsConnection>();

beforeAll(async () => {
  nats = await startRestartableNats(await natsServerBinary());
  operator = await connect({ servers: nats.url });
  const manager = await jetstreamManager(operator);
  await ensureStreams(manager, { replicas: 1 });
  await ensureSnapshot(manager, 1);
  for (const service of services) {
    const { user, password, url } = natsLogin(service, nats.url);
    const inboxPrefix = inboxPrefixOf(service);
    connections.set(service, await connect({ servers: url, user, pass: password, inboxPrefix }));
  }
});
afterAll(async () => {
  for (const connection of [...connections.values(), operator]) await connection.close();
  await nats.stop();
});

const as = (service: Service) => connections.get(service) as NatsConnection;

/** Returns the denied subjects. The server reports a denied operation before it responds to the flush. */
async function denials(
  connection: NatsConnection,
  work: () => void | Promise<void>,
): Promise<string[]> {
  const denied: string[] = [];
  const status = connection.status();
  const listening = (async () => {
    for await (const event of status)
      if (event.type === "error" && event.error instanceof errors.PermissionViolationError)
        denied.push(event.error.subject);
  })();
  await work();
  await connection.flush();
  (status as unknown as { stop(): void }).stop();
  await listening;
  return denied;
}

/** Returns the services that may publish to a subject. */
async function publishersTo(subject: string): Promise<Service[]> {
  const allowed: Service[] = [];
  for (const service of services) {
    const denied = await denials(as(service), () => as(service).publish(subject, "{}"));
    if (denied.length === 0) allowed.push(service);
  }
  return allowed;
}

async function subscribersTo(subject: string): Promise<Service[]> {
  const allowed: Service[] = [];
  for (const service of services) {
    const connection = as(service);
    const denied = await denials(connection, () => {
      connection.subscribe(subject, { callback: () => undefined });
    });
    if (denied.length === 0) allowed.push(service);
  }
  return allowed;
}

const everyLastSeen: Service[] = [
  "management",
  "scheduler",
  "webhook-dispatcher",
  "usage-metering",
];

describe("a NATS user", () => {
  it.each<[string, Service[]]>([
    [`${snapshotBucket.subjectPrefix}organization.key.id`, ["management"]],
    [`${snapshotBucket.subjectPrefix}complete`, ["management"]],
    [`${peopleBucket.subjectPrefix}session.id`, ["management"]],
    [`${quotaBucket.subjectPrefix}organization`, ["usage-metering"]],
    ["flag.toggled", ["management"]],
    ["flag_state.updated", ["management"]],
    [scheduleStream.due.subject, ["scheduler"]],
    [scheduleStream.resolved.subject, ["management"]],
    [usageStream.recorded.subject, ["sdk-edge"]],
    [usageStream.lastSeen.subject, everyLastSeen],
    [evaluationsStream.reported.subject, ["sdk-edge"]],
    [auditStream.recorded.subject, ["scheduler", "webhook-dispatcher"]],
    ["edge.report", ["sdk-edge"]],
    ["edge.streams", ["sdk-edge"]],
    ...serviceNames.map((service): [string, Service[]] => [`process.status.${service}`, [service]]),
    ["set_aside.audit.recorded", ["management"]],
    ["set_aside.flag.toggled", ["webhook-dispatcher"]],
    ["set_aside.usage.recorded", ["usage-metering"]],
    ["set_aside.evaluations.reported", ["usage-metering"]],
    ["set_aside.schedule.due", ["management"]],
    ["anything.else", []],
  ])("publishes to %s only as %j", async (subject, publishers) => {
    expect(await publishersTo(subject)).toEqual(publishers);
  });

  it.each<[string, Service[]]>([
    [`$JS.ACK.${usageStream.name}.usage-metering.1.1.1.1.0`, ["usage-metering"]],
    [`$JS.ACK._.hash.${usageStream.name}.usage-metering.1.1.1.1.0.x`, ["usage-metering"]],
    [`$JS.ACK.${evaluationsStream.name}.usage-metering.1.1.1.1.0`, ["usage-metering"]],
    [`$JS.ACK.${usageStream.name}.management.1.1.1.1.0`, ["management"]],
    [`$JS.ACK.${auditStream.name}.management.1.1.1.1.0`, ["management"]],
    [`$JS.ACK.${scheduleStream.name}.management.1.1.1.1.0`, ["management"]],
    [`$JS.ACK.${scheduleStream.name}.scheduler.1.1.1.1.0`, ["scheduler"]],
    [`$JS.ACK.${flagEventsStream.name}.webhook-dispatcher.1.1.1.1.0`, ["webhook-dispatcher"]],
  ])("acknowledges with %s only as %j", async (subject, consumers) => {
    expect(await publishersTo(subject)).toEqual(consumers);
  });

  it.each<[string, Service[]]>([
    [">", []],
    ["_INBOX.>", []],
    ...services.map((service): [string, Service[]] => [`_INBOX.${service}.>`, [service]]),
    ["flag.>", []],
    ["$KV.>", []],
    ["$JS.ACK.>", []],
    ["$JS.API.>", []],
    ["usage.recorded", []],
    ["evaluations.reported", []],
    ["audit.recorded", []],
    ["edge.report", ["management"]],
    ["edge.streams", ["sdk-edge", "usage-metering"]],
    ["process.status.*", ["management", "doctor"]],
  ])("subscribes to %s only as %j", async (subject, subscribers) => {
    expect(await subscribersTo(subject)).toEqual(subscribers);
  });

  it.each(services.map((service) => `_INBOX.${service}.1`))(
    "cannot send a forged reply to %s",
    async (subject) => {
      expect(await publishersTo(subject)).toEqual([]);
    },
  );

  /** Every service but edges. */
  const readersOfPeople: Service[] = [
    "management",
    "scheduler",
    "webhook-dispatcher",
    "usage-metering",
  ];
  const created: Service[] = ["management", "setup"];
  const { streamName: snapshot } = snapshotBucket;
  const { streamName: people } = peopleBucket;
  it.each<[string, Service[]]>([
    ["STREAM.CREATE.FOREIGN", []],
    [`STREAM.CREATE.${usageStream.name}`, created],
    [`STREAM.CREATE.${evaluationsStream.name}`, created],
    [`STREAM.CREATE.${snapshot}`, ["management"]],
    [`STREAM.DELETE.${snapshot}`, []],
    [`STREAM.DELETE.${usageStream.name}`, []],
    [`STREAM.DELETE.${flagEventsStream.name}`, ["management"]],
    [`STREAM.PURGE.${snapshot}`, ["management"]],
    [`STREAM.PURGE.${usageStream.name}`, []],
    [`STREAM.CREATE.${people}`, ["management"]],
    [`STREAM.DELETE.${people}`, []],
    [`STREAM.PURGE.${people}`, ["management"]],
    [`STREAM.INFO.${people}`, [...readersOfPeople, "doctor"]],
    [`STREAM.MSG.GET.${people}`, []],
    [`DIRECT.GET.${people}`, []],
    [`DIRECT.GET.${people}.$KV.PEOPLE.complete`, readersOfPeople],
    [`CONSUMER.CREATE.${people}.name`, readersOfPeople],
    [`STREAM.UPDATE.${snapshot}`, []],
    [`STREAM.UPDATE.${flagEventsStream.name}`, created],
    [`STREAM.UPDATE.${usageStream.name}`, created],
    [`STREAM.UPDATE.${evaluationsStream.name}`, created],
    [`STREAM.MSG.GET.${snapshot}`, []],
    [`STREAM.MSG.DELETE.${flagEventsStream.name}`, []],
    [`STREAM.SNAPSHOT.${snapshot}`, []],
    ["STREAM.RESTORE.FOREIGN", []],
    ["STREAM.NAMES", []],
    [`CONSUMER.LIST.${snapshot}`, []],
    [`DIRECT.GET.${snapshot}`, []],
    [`CONSUMER.CREATE.${snapshot}.name`, ["management", "scheduler", "sdk-edge", "usage-metering"]],
    [
      `CONSUMER.CREATE.${snapshot}.name.$KV.SNAPSHOT_2.*.key.*`,
      ["management", "webhook-dispatcher"],
    ],
    [`CONSUMER.CREATE.${flagEventsStream.name}.name`, ["management"]],
    [`CONSUMER.CREATE.${usageStream.name}`, []],
    [`CONSUMER.CREATE.${usageStream.name}.name`, []],
    [`CONSUMER.CREATE.${usageStream.name}.usage-metering.usage.recorded`, ["usage-metering"]],
    [
      `CONSUMER.CREATE.${evaluationsStream.name}.usage-metering.evaluations.reported`,
      ["usage-metering"],
    ],
    [`CONSUMER.MSG.NEXT.${evaluationsStream.name}.usage-metering`, ["usage-metering"]],
    [`CONSUMER.DURABLE.CREATE.${usageStream.name}.usage-metering`, []],
    [`CONSUMER.MSG.NEXT.${usageStream.name}.usage-metering`, ["usage-metering"]],
    [`CONSUMER.MSG.NEXT.${usageStream.name}.management`, ["management"]],
    [`CONSUMER.MSG.NEXT.${scheduleStream.name}.management`, ["management"]],
    [`CONSUMER.MSG.NEXT.${scheduleStream.name}.scheduler`, ["scheduler"]],
    [`CONSUMER.MSG.NEXT.${flagEventsStream.name}.webhook-dispatcher`, ["webhook-dispatcher"]],
    [`CONSUMER.DELETE.${scheduleStream.name}.management`, ["management"]],
    [`CONSUMER.DELETE.${usageStream.name}.usage-metering`, ["usage-metering"]],
    [`STREAM.INFO.${deadLetterStream.name}`, [...created, "doctor"]],
    [`STREAM.MSG.GET.${deadLetterStream.name}`, []],
    [`CONSUMER.CREATE.${deadLetterStream.name}.name`, []],
    [`CONSUMER.CREATE.${deadLetterStream.name}.name.set_aside.>`, ["management"]],
    ["ACCOUNT.INFO", []],
    ["SERVER.REMOVE", []],
  ])("sends the request %s only as %j", async (request, requesters) => {
    // The request is invalid, so an allowed request changes nothing.
    const allowed: Service[] = [];
    for (const service of services) {
      const subject = `$JS.API.${request}`;
      const denied = await denials(as(service), () => as(service).publish(subject, "invalid"));
      if (denied.length === 0) allowed.push(service);
    }
    expect(allowed).toEqual(requesters);
  });
});

describe("an edge", () => {
  it("reads a bucket that is large enough for flow control", async () => {
    const client = jetstream(operator);
    const entry = "x".repeat(100_000);
    const subjects = Array.from({ length: 200 }, (_, at) => `${snapshotBucket.subjectPrefix}${at}`);
    await Promise.all(subjects.map((subject) => client.publish(subject, entry)));
    const connection = as("sdk-edge");
    const manager = await jetstreamManager(connection, { checkAPI: false });
    const stream = snapshotBucket.streamName;
    const { state } = await manager.streams.info(stream);
    const received = new Set<string>();
    const denied = await denials(connection, async () => {
      const reading = await readStream({
        ...{ connection, manager, stream, filter: undefined, from: 1 },
        lastSequence: state.last_seq,
        onMessage: ({ subject }) => received.add(subject),
      });
      await Promise.race([reading.caughtUp, reading.ended]);
      reading.stop("read");
    });
    expect(denied).toEqual([]);
    expect(subjects.filter((subject) => !received.has(subject))).toEqual([]);
  });
});

describe("an attack that rights cannot prevent", () => {
  const complete = `${snapshotBucket.subjectPrefix}complete`;
  const target = `${snapshotBucket.subjectPrefix}organization.key.id`;

  it("makes JetStream store a reply to an edge under another subject", async () => {
    const manager = await jetstreamManager(operator);
    const entry = JSON.stringify({ epoch: "any" });
    await jetstream(operator).publish(complete, entry);
    const request = `$JS.API.DIRECT.GET.${snapshotBucket.streamName}.${complete}`;
    as("sdk-edge").publish(request, undefined, { reply: target });
    const stored = await eventually(async () => {
      const query = { last_by_subj: target };
      const found = await manager.streams.getMessage(snapshotBucket.streamName, query);
      return found?.string() === entry;
    });
    expect(stored).toBe(true);
  });
});

describe("a service that delivers a forged message to the stream of another one", () => {
  const queues = [
    { ...flagEventsStream, consumer: flagEventsStream.webhookConsumer, subject: ">" },
    { name: scheduleStream.name, ...scheduleStream.due },
    { name: scheduleStream.name, ...scheduleStream.resolved },
    { name: auditStream.name, ...auditStream.recorded },
  ];
  const targets = ["flag.deleted", "schedule.due", "schedule.resolved", "audit.recorded"] as const;
  const consumerOf: Record<string, Service> = {
    "flag.deleted": "webhook-dispatcher",
    "schedule.resolved": "scheduler",
  };
  const metrics = createQueueMetrics(new Registry());
  const handled: { subject: string; text: string }[] = [];
  const consumptions: Consumption[] = [];
  let manager: JetStreamManager;

  beforeAll(async () => {
    manager = await jetstreamManager(operator);
    await manager.streams.purge(snapshotBucket.streamName);
    await manager.streams.purge(flagEventsStream.name);
    for (const [index, { name: stream, consumer, subject }] of queues.entries())
      consumptions.push(
        consumeQueue({
          connection: as(consumerOf[targets[index] ?? ""] ?? "management"),
          ...{ stream, consumer, subject, metrics, concurrency: 10 },
          verify: testMessageVerifier,
          isOutage: () => false,
          async handle(message) {
            const text = Buffer.from(message.payload).toString();
            handled.push({ subject: message.subject, text });
            return "done";
          },
          logger: pino({ level: "silent" }),
        }),
      );
  });
  afterAll(async () => {
    for (const consumption of consumptions) await consumption.stop();
  });

  /** Lets the service deliver everything in a bucket to the target, if it has the right to. */
  async function deliver(service: Service, target: string, stream: string, filter?: string) {
    const name = randomUUID();
    const request = ["$JS.API.CONSUMER.CREATE", stream, name, ...(filter ? [filter] : [])];
    const config = {
      ...{ name, deliver_subject: target, deliver_policy: "all", ack_policy: "none" },
      ...(filter && { filter_subject: filter }),
    };
    const denied = await denials(as(service), () =>
      as(service).publish(request.join("."), JSON.stringify({ stream_name: stream, config })),
    );
    if (denied.length > 0) return;
    await eventually(async () => (await manager.consumers.info(stream, name)).num_pending === 0);
    await manager.consumers.delete(stream, name);
  }

  /** Publishes a message as its writer does, and waits until it is handled. */
  async function awaitNext(target: (typeof targets)[number]) {
    const text = JSON.stringify(randomUUID());
    const [writer] = writersOf(target) as [SigningService];
    const message = { subject: target, payload: text };
    await publishSigned(jetstream(operator), testMessageSigner(writer), message);
    await eventually(() => handled.some((one) => one.text === text));
  }

  it.each(targets.flatMap((target) => services.map((service) => [service, target] as const)))(
    "as %s, is ignored by the consumer of %s",
    async (service, target) => {
      const text = JSON.stringify({ by: service });
      const isSigner = service in signers;
      const sign = isSigner ? testMessageSigner(service as SigningService) : signNothing;
      const options = messageHeaders({ signature: await sign({ subject: target, payload: text }) });
      const buckets = [`${quotaBucket.subjectPrefix}any`, `${snapshotBucket.subjectPrefix}a.key.a`];
      // Anybody may have stored them, because replies to requests can be stored in a bucket.
      for (const subject of [...buckets, `${snapshotBucket.subjectPrefix}complete`])
        await jetstream(operator).publish(subject, text, options);

      as(service).publish(target, text, options);
      const complete = `${snapshotBucket.streamName}.${snapshotBucket.subjectPrefix}complete`;
      as(service).publish(`$JS.API.DIRECT.GET.${complete}`, undefined, { reply: target });
      const keys = `${snapshotBucket.subjectPrefix}${keysAndScopesFilter}`;
      await deliver(service, target, snapshotBucket.streamName);
      await deliver(service, target, snapshotBucket.streamName, keys);
      await deliver(service, target, quotaBucket.streamName);
      await deliver(service, target, quotaBucket.streamName, `${quotaBucket.subjectPrefix}*`);
      await awaitNext(target);

      const isWriter = writersOf(target).some((writer) => writer === service);
      expect(handled.some((one) => one.text === text && one.subject === target)).toBe(isWriter);
    },
  );

  it("is counted in every queue", async () => {
    const { values } = await metrics.messages.get();
    const forged = values.filter(({ labels }) => labels.outcome === "forged");
    expect(new Set(forged.map(({ labels }) => labels.queue))).toEqual(
      new Set(queues.map(({ subject }) => subject)),
    );
  });
});

const signers: Record<SigningService, true> = {
  management: true,
  scheduler: true,
  "webhook-dispatcher": true,
};
const signNothing = async () => undefined;
