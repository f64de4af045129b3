import {
  checkUsageRecorded,
  defaultPlans,
  quotaBucket,
  type UsageRecorded,
  usageStream,
} from "@halyard/contracts";
import { ensureQuota, ensureUsage } from "@halyard/jetstream";
import {
  call,
  eventually,
  natsServerBinary,
  openSnapshotBucket,
  type RestartableNats,
  type ServiceProcess,
  type SnapshotBucket,
  startRestartableNats,
  startServiceProcess,
} from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { apiKey, flagEntry, id, organizationWith, plansEntry } from "../builders.ts";

/**
 * Runs edges as processes, and checks the usage messages that they send through failures of the broker. One edge runs
 * through all tests. Tests that stop an edge start another one.
 */
const key = apiKey();
const organization = organizationWith({ requests_per_month: 100_000 });
let nats: RestartableNats;
let bucket: SnapshotBucket;
let connection: NatsConnection;
let manager: JetStreamManager;
let edge: CountedEdge;
const started: ServiceProcess[] = [];

/** An edge with the number of its answered requests. It must send the counts of all of them. */
type CountedEdge = { process: ServiceProcess; answered: number };

beforeAll(async () => {
  nats = await startRestartableNats(await natsServerBinary());
  bucket = await openSnapshotBucket(nats.url);
  connection = await connect({
    servers: nats.url,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 50,
  });
  manager = await jetstreamManager(connection, { timeout: 3_000 });
  await ensureUsage(manager, 1);
  await ensureQuota(manager, 1);
  await bucket.rewrite([key.entry, ...organization, flagEntry({ enabled: true })]);
  edge = await startEdge();
});
afterAll(async () => {
  for (const one of started) await one.kill();
  await connection.close();
  await bucket.close();
  await nats.stop();
});

describe("given requests of many kinds", () => {
  it("sends each request once, with its key", async () => {
    await restart();
    const before = Date.now();
    await pollTimes(20);
    for (let time = 0; time < 5; time += 1) await evaluate();
    await eventually(async () => requestsIn(await messages()) >= 25);
    const sent = await messages();
    expect(sums(sent)).toEqual({ flags: 20, evaluate: 5 });
    const [environment] = sent[0]?.environments ?? [];
    expect(environment).toMatchObject({
      organization_id: id("org"),
      project_id: id("project"),
      environment_id: id("env"),
    });
    const bulk = sent.flatMap(({ environments }) => environments);
    expect(bulk.reduce((sum, one) => sum + one.bulk_answers, 0)).toBe(20);
    const [used] = sent.at(-1)?.keys ?? [];
    expect(used?.key_id).toBe(key.keyId);
    expect(Date.parse(used?.used_at ?? "")).toBeGreaterThanOrEqual(before - 1_000);
  });
});

describe("given an edge that is stopped", () => {
  it("sends the remaining counts", async () => {
    await restart();
    const leaving = await startEdge();
    await pollTimes(50, leaving);
    expect(await leaving.process.stop()).toBe(0);
    const sent = await messages();
    expect(requestsIn(sent)).toBe(leaving.answered);
    expect(areNumbered(sent, 1)).toBe(true);
  });
});

describe("given a deleted stream", () => {
  it("creates the stream again and continues", async () => {
    await restart();
    await manager.streams.delete(usageStream.name);
    await pollTimes(7);
    await eventually(async () => requestsIn(await messages()) === 7);
  });
});

describe("given a broker that does not respond, so that the outcome of writes is unknown", () => {
  it("sends each count exactly once after the broker responds again", async () => {
    const next = await restart();
    nats.signal("SIGSTOP");
    try {
      await pollTimes(20);
      await failsToSend();
      await pollTimes(20);
    } finally {
      nats.signal("SIGCONT");
    }
    await isQuiet(edge);
    const sent = await eventually(messages);
    expect(requestsIn(sent)).toBe(40);
    expect(areNumbered(sent, next)).toBe(true);
  });
});

describe("given a broker that is unavailable", () => {
  let next: number;
  let sent: UsageRecorded[];
  let leaving: CountedEdge;
  let exitCode: number | NodeJS.Signals;

  beforeAll(async () => {
    leaving = await startEdge();
    await isQuiet(leaving);
    next = await restart();
    await nats.kill();
    await pollTimes(3, leaving);
    const isStopped = leaving.process.stop();
    await pollTimes(30);
    await failsToSend();
    await pollTimes(30);
    exitCode = await isStopped;
    await nats.start();
    await pollTimes(10);
    await isQuiet(edge);
    // The test's own connection can reconnect later than the edge's.
    sent = await eventually(messages);
  });

  it("serves requests meanwhile, and sends each count once after the broker is available", () => {
    expect(requestsIn(sent)).toBe(70);
    expect(areNumbered(sent, next)).toBe(true);
  });

  it("logs the unsent counts if it is stopped before that", () => {
    expect(exitCode).toBe(0);
    expect(leaving.process.log()).toMatch(
      /"requests":3,.*"msg":"counted requests could not be sent"/,
    );
  });
});

describe("given numbers from usage-metering", () => {
  it("skips an invalid number", async () => {
    await jetstream(connection).publish(`${quotaBucket.subjectPrefix}${id("org")}`, "many");
    const logsTheSkip = /"msg":"a used month was left out"/;
    await eventually(() => logsTheSkip.test(edge.process.log()));
    expect(await poll()).toBe(200);
  });

  it("rejects an organization that has used up its month, and admits it with a larger plan", async () => {
    await sendUsed(100_000);
    await eventually(async () => (await poll()) === 429);
    const larger = defaultPlans.pro?.requests_per_month ?? null;
    await bucket.put(plansEntry(2, { requests_per_month: larger }));
    await eventually(async () => (await poll()) === 200);
    expect(await metric(edge, "usage_rejected_requests_total")).toBeGreaterThan(0);
    expect(await metric(edge, "quota_current")).toBe(1);
  });
});

async function startEdge(): Promise<CountedEdge> {
  const process = await startServiceProcess("sdk-edge", { NATS_URL: nats.url });
  started.push(process);
  const one = { process, answered: 0 };
  await eventually(async () => (await poll(one)) === 200);
  return one;
}

async function poll(one = edge): Promise<number> {
  const { status } = await call(`${one.process.url}/api/v1/sdk/flags`, { key: key.text });
  if (status === 200) one.answered += 1;
  return status;
}

async function evaluate(): Promise<void> {
  const url = `${edge.process.url}/api/v1/sdk/evaluate?key=checkout`;
  expect((await call(url, { key: key.text })).status).toBe(200);
  edge.answered += 1;
}

async function pollTimes(times: number, one = edge): Promise<void> {
  for (let time = 0; time < times; time += 1) expect(await poll(one)).toBe(200);
}

/** Waits until an edge has sent the counts of all answered requests. */
async function isQuiet(one: CountedEdge): Promise<void> {
  await eventually(
    async () =>
      (await metric(one, "usage_collected_requests_total")) === one.answered &&
      (await metric(one, "usage_unacknowledged_requests")) === 0,
  );
}

/** Purges all earlier messages. Returns the number of the next message. */
async function restart(): Promise<number> {
  await isQuiet(edge);
  await manager.streams.purge(usageStream.name);
  return (await metric(edge, 'usage_messages_sent_total{outcome="arrived"')) + 1;
}

/** Waits until the edge has failed to send. */
async function failsToSend(): Promise<void> {
  const failures = () => metric(edge, 'usage_messages_sent_total{outcome="failed"');
  const before = await failures();
  await eventually(async () => (await failures()) > before);
}

/** Returns all messages of the stream, oldest first. */
async function messages(): Promise<UsageRecorded[]> {
  const { state } = await manager.streams.info(usageStream.name);
  const read: UsageRecorded[] = [];
  for (let seq = state.first_seq; seq <= state.last_seq; seq += 1) {
    const stored = await manager.streams.getMessage(usageStream.name, { seq });
    const checked = checkUsageRecorded(stored?.json());
    if (!checked.ok) throw new Error(checked.problem);
    read.push(checked.value);
  }
  return read;
}

function sums(sent: readonly UsageRecorded[]): { flags: number; evaluate: number } {
  const sum = { flags: 0, evaluate: 0 };
  for (const { requests } of sent.flatMap(({ environments }) => environments)) {
    sum.flags += requests.flags ?? 0;
    sum.evaluate += requests.evaluate ?? 0;
  }
  return sum;
}

function requestsIn(sent: readonly UsageRecorded[]): number {
  const { flags, evaluate } = sums(sent);
  return flags + evaluate;
}

/** Returns whether all messages are from one edge and numbered from `from` without gaps or repetitions. */
function areNumbered(sent: readonly UsageRecorded[], from: number): boolean {
  const edges = new Set(sent.map((one) => one.edge));
  return edges.size === 1 && sent.every(({ sequence }, index) => sequence === from + index);
}

/** Returns a value of an edge's metrics, by the beginning of its line after the prefix `halyard_`. */
async function metric({ process }: CountedEdge, begins: string): Promise<number> {
  const text = await (await fetch(`${process.metricsUrl}/metrics`)).text();
  const line = text.split("\n").find((one) => one.startsWith(`halyard_${begins}`));
  return Number(line?.split(" ").at(-1));
}

/** Publishes the used requests of the month, as usage-metering does. */
async function sendUsed(requests: number): Promise<void> {
  const month = new Date().toISOString().slice(0, 7);
  const entry = { organization_id: id("org"), month, requests };
  await jetstream(connection).publish(
    `${quotaBucket.subjectPrefix}${id("org")}`,
    JSON.stringify(entry),
  );
}
