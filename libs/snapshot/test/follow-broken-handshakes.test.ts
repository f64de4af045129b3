import { randomUUID } from "node:crypto";
import { completeKey, everythingFilter, snapshotBucket } from "@halyard/contracts";
import { connectNats } from "@halyard/jetstream";
import { collectRead, followSnapshot } from "@halyard/snapshot";
import { eventually, recreateSnapshot, startTestNats, type TestNats } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";
import { type HandshakeProxy, startHandshakeProxy } from "./handshake-proxy.ts";

/** A follower of the snapshot whose connection has failing handshakes. */
let nats: TestNats;
let proxy: HandshakeProxy;
let direct: NatsConnection;
let proxied: NatsConnection;
const logger = pino({ level: "silent" });

beforeAll(async () => {
  nats = await startTestNats();
  proxy = await startHandshakeProxy(nats.url);
  direct = await connect({ servers: nats.url });
  proxied = await connectNats({ nats: { url: proxy.url }, name: "test", logger });
});
afterAll(async () => {
  await proxied?.close();
  await direct?.close();
  await proxy?.close();
  await nats?.stop();
});

async function writeSnapshot(): Promise<string> {
  const epoch = randomUUID();
  await recreateSnapshot(await jetstreamManager(direct));
  await jetstream(direct).publish(
    snapshotBucket.subjectPrefix + completeKey,
    JSON.stringify({ epoch, from: 1 }),
  );
  return epoch;
}

describe("given handshakes that fail between INFO and PONG", () => {
  it("follows the snapshot again after the first successful handshake", async () => {
    const epochs: string[] = [];
    const first = await writeSnapshot();
    const followed = followSnapshot({
      connection: proxied,
      filter: everythingFilter,
      logger,
      follower: {
        beginRead: () => collectRead((epoch) => void epochs.push(epoch)),
        apply: () => undefined,
        isGenuineComplete: () => true,
        isGenuine: () => true,
        rejected: () => undefined,
      },
    });
    await followed.ready;
    proxy.breakHandshakes();
    // The client abandons the first broken handshake after its time-out.
    await eventually(() => proxy.broken() >= 2);
    expect(followed.isCurrent()).toBe(false);
    const second = await writeSnapshot();
    proxy.restore();
    await eventually(() => followed.isCurrent());
    expect(epochs).toEqual([first, second]);
    await followed.stop();
  });
});
