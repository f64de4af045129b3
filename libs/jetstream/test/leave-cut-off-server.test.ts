import { connectNats } from "@halyard/jetstream";
import { eventually, type NatsCluster, natsServerBinary, startNatsCluster } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";

/** A port without a server. */
const nowhere = 1;
const logger = pino({ level: "silent" });

describe("given a cluster with a server that reaches no other", () => {
  let nats: NatsCluster;
  let connection: NatsConnection | undefined;
  beforeAll(async () => {
    nats = await startNatsCluster(await natsServerBinary(), async ({ from, to, port }) =>
      [from, to].includes("nats-0") ? nowhere : port,
    );
  });
  afterAll(async () => {
    await connection?.close();
    await nats?.stop();
  });

  /** The client begins with any of the servers. */
  async function connectTo(server: string): Promise<NatsConnection> {
    for (;;) {
      const connected = await connectNats({ nats: { url: nats.urls }, name: "test", logger });
      if (connected.getServer() === server) return connected;
      await connected.close();
    }
  }

  it("leaves that server for another", async () => {
    const cutOff = new URL(nats.url).host;
    connection = await connectTo(cutOff);
    const moved = await eventually(() => connection?.getServer(), {
      until: (server) => server !== cutOff,
    });
    expect(nats.urls).toContain(moved);
  });
});
