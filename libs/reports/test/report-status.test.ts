import { type ProcessStatus, processStatuses, quotaBucket } from "@halyard/contracts";
import { connectNats, ensureQuota, followBucket } from "@halyard/jetstream";
import { reportStatus } from "@halyard/reports";
import { eventually, natsLogin, startTestNats, type TestNats } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";

let nats: TestNats;
let operator: NatsConnection;
let manager: JetStreamManager;
let edge: NatsConnection;
const logger = pino({ level: "silent" });
const stream = quotaBucket.streamName;
const statuses: ProcessStatus[] = [];

beforeAll(async () => {
  nats = await startTestNats();
  operator = await connect({ servers: nats.url });
  manager = await jetstreamManager(operator);
  operator.subscribe(processStatuses.subjectOf("sdk-edge"), {
    callback: (_error, message) => void statuses.push(message.json()),
  });
  await operator.flush();
  edge = await connectNats({ nats: natsLogin("sdk-edge", nats.url), name: "sdk-edge", logger });
  reportStatus(edge, "sdk-edge");
});
afterAll(async () => {
  await edge.close();
  await operator.close();
  await nats.stop();
});

const followersWhen = async (state: ProcessStatus["followers"][number]["state"]) =>
  (await eventually(() => statuses.at(-1)?.followers.find((found) => found.state === state)))
    .stale_seconds;

describe("a connected service", () => {
  it("reports each follower as starting, current, and stale with a growing time", async () => {
    const bucket = { bucket: quotaBucket, filter: "*", onEntry: () => undefined };
    const followed = followBucket({ connection: edge, ...bucket, logger });
    expect(await followersWhen("starting")).toBe(0);
    await ensureQuota(manager, 1);
    expect(await followersWhen("current")).toBe(0);
    await manager.streams.delete(stream);
    await followersWhen("stale");
    await eventually(() => (statuses.at(-1)?.followers[0]?.stale_seconds ?? 0) >= 2);
    await followed.stop();
    await eventually(() => statuses.at(-1)?.followers.length === 0);
    expect(new Set(statuses.map(({ id }) => id)).size).toBe(1);
  });
});
