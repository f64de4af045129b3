import { leasesBucket } from "@halyard/contracts";
import { connectNats, ensureLeases } from "@halyard/jetstream";
import { startTestNats, type TestNats } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";

const replicas = 8;
const rounds = 20;

describe("given a stream that several processes make at the same moment", () => {
  let nats: TestNats;
  let connections: NatsConnection[];
  let managers: JetStreamManager[];
  beforeAll(async () => {
    nats = await startTestNats();
    const logger = pino({ level: "silent" });
    const connect = () => connectNats({ nats: { url: nats.url }, name: "test", logger });
    connections = await Promise.all(Array.from({ length: replicas }, connect));
    managers = await Promise.all(connections.map((each) => jetstreamManager(each)));
  });
  afterAll(async () => {
    await Promise.all(connections.map((each) => each.close()));
    await nats.stop();
  });

  it("is there for all of them, and one and the same", async () => {
    for (let round = 0; round < rounds; round += 1) {
      await Promise.all(managers.map((manager) => ensureLeases(manager, 1)));
      expect(await managers[0]?.streams.delete(leasesBucket.streamName)).toBe(true);
    }
  });
});
