import { quotaBucket } from "@halyard/contracts";
import { connectNats, ensureQuota } from "@halyard/jetstream";
import { natsServerBinary, type RestartableNats, startRestartableNats } from "@halyard/testing";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";
import { readStream } from "../src/read-stream.ts";

let nats: RestartableNats;
let connection: NatsConnection;

beforeEach(async () => {
  nats = await startRestartableNats(await natsServerBinary());
  const logger = pino({ level: "silent" });
  connection = await connectNats({ nats: { url: nats.url }, name: "test", logger });
});
afterEach(async () => {
  await connection.close();
  await nats.stop();
});

describe("given a broker that is silent while its connections stay open", () => {
  it("ends the read because heartbeats are missing", async () => {
    const manager = await jetstreamManager(connection);
    await ensureQuota(manager, 1);
    const reading = await readStream({
      connection,
      manager,
      stream: quotaBucket.streamName,
      filter: undefined,
      from: 1,
      lastSequence: 0,
      onMessage: () => undefined,
    });
    await reading.caughtUp;
    nats.signal("SIGSTOP");
    const reason = await reading.ended;
    nats.signal("SIGCONT");
    expect(reason).toBe("no heartbeat from the broker");
  });
});
