import { quotaBucket } from "@halyard/contracts";
import { connectNats, ensureQuota, type FollowedStream, followStream } from "@halyard/jetstream";
import { eventually, startTestNats, type TestNats } from "@halyard/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";
import { Registry } from "prom-client";

/** The watchdog of a follower that waits for a response that never arrives. */
let nats: TestNats;
let connection: NatsConnection;
let followed: FollowedStream | undefined;
const registry = new Registry();
const logger = pino({ level: "silent" });
const stream = quotaBucket.streamName;

beforeAll(async () => {
  nats = await startTestNats();
  const servers = { url: nats.url };
  connection = await connectNats({ nats: servers, name: "test", metrics: registry, logger });
  await ensureQuota(await jetstreamManager(connection), 1);
});
afterEach(() => followed?.stop());
afterAll(async () => {
  await connection?.close();
  await nats?.stop();
});

/** Follows a source whose first responses never arrive. */
function follow({ unanswered }: { unanswered: number }) {
  const asked = { times: 0, reads: 0 };
  followed = followStream({
    connection,
    logger,
    stalledAfterMs: 1_000,
    source: {
      stream,
      filter: `${quotaBucket.subjectPrefix}>`,
      identify() {
        asked.times += 1;
        return asked.times <= unanswered
          ? new Promise(() => undefined)
          : Promise.resolve({ identity: "same" });
      },
      begin: () => ({
        take: () => undefined,
        caughtUp: () => {
          asked.reads += 1;
        },
      }),
    },
  });
  return { ...followed, asked };
}

async function metric(name: string): Promise<number | undefined> {
  const { values = [] } = (await registry.getSingleMetric(name)?.get()) ?? {};
  return values.find(({ labels }) => labels.stream === undefined || labels.stream === stream)
    ?.value;
}

describe("given a follower that makes no progress while NATS is connected", () => {
  it("restarts it until it is current, and counts the restarts", async () => {
    const { isCurrent, asked } = follow({ unanswered: 2 });
    await eventually(async () => (await metric("halyard_follower_restarts_total")) !== 0);
    expect(await metric("halyard_follower_current")).toBe(0);
    expect(await metric("halyard_nats_connected")).toBe(1);
    await eventually(isCurrent);
    expect(await metric("halyard_follower_restarts_total")).toBeGreaterThanOrEqual(2);
    expect(await metric("halyard_follower_current")).toBe(1);
    expect(asked.reads).toBe(1);
  });

  it("stops without waiting for the response", async () => {
    const { asked, stop } = follow({ unanswered: Number.POSITIVE_INFINITY });
    await eventually(() => asked.times === 1);
    await stop();
    expect(await metric("halyard_follower_restarts_total")).toBeUndefined();
  });
});

describe("given a follower that is current", () => {
  it("does not restart it", async () => {
    const { isCurrent, asked } = follow({ unanswered: 0 });
    await eventually(isCurrent);
    const restarts = await metric("halyard_follower_restarts_total");
    // The identity is checked every second, as often as the watchdog would restart the follower.
    const { times } = asked;
    await eventually(() => asked.times >= times + 3);
    expect(asked.reads).toBe(1);
    expect(await metric("halyard_follower_restarts_total")).toBe(restarts);
  });
});
