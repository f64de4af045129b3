import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { eventually } from "@halyard/testing";
import { afterEach, describe, expect, it } from "@jest/globals";
import { limitConnections } from "../src/connection-limits.ts";
import { createMetrics } from "../src/index.ts";

/** Tests of connection limits. Each address of 127.0.0.0/8 represents a client. */
const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

async function givenServer(limits: {
  total?: number;
  perAddress?: number;
  trustedProxies?: string[];
}) {
  const held: ServerResponse[] = [];
  const server = createServer((request, response) => {
    if (request.url === "/hold") held.push(response);
    else response.end("fine");
  });
  const registry = createMetrics({ service: "test" });
  limitConnections(
    server,
    {
      MAX_CONNECTIONS: limits.total ?? 100,
      MAX_CONNECTIONS_PER_ADDRESS: limits.perAddress ?? 100,
      TRUSTED_PROXIES: limits.trustedProxies ?? [],
    },
    registry,
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  ends.push(() => server.close().closeAllConnections());
  const { port } = server.address() as AddressInfo;

  /** Opens a connection and waits until the server has received it. */
  async function open(address = "127.0.0.1"): Promise<Socket> {
    const arrived = once(server, "connection");
    const client = connect({ port, host: "127.0.0.1", localAddress: address });
    client.on("error", () => undefined).resume();
    ends.push(() => client.destroy());
    await arrived;
    return client;
  }
  async function hold(client: Socket): Promise<void> {
    const count = held.length;
    client.write("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    await eventually(() => held.length > count, { because: "the request has arrived" });
  }
  async function rejections(limit: string): Promise<number> {
    const text = await registry.metrics();
    const line = new RegExp(`halyard_connections_rejected_total\\{.*limit="${limit}".*\\} (\\d+)`);
    return Number(line.exec(text)?.[1] ?? 0);
  }
  return { held, open, hold, rejections };
}

/** Sends a request. Returns whether the connection is still open and served. */
async function isServed(client: Socket): Promise<boolean> {
  if (client.destroyed) return false;
  client.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  return Promise.race([
    once(client, "data").then(() => true),
    once(client, "close").then(() => false),
  ]);
}

describe("given the maximum number of connections", () => {
  it("closes the new connection, and keeps those with requests in flight", async () => {
    const { open, hold, held, rejections } = await givenServer({ total: 2 });
    for (const client of [await open(), await open()]) await hold(client);
    expect(await isServed(await open())).toBe(false);
    expect(await rejections("total")).toBe(1);
    expect(held.every((response) => !response.destroyed)).toBe(true);
  });

  it("closes idle connections, so that the next connection is served", async () => {
    const { open, hold } = await givenServer({ total: 2 });
    const [working, idle] = [await open(), await open()];
    await hold(working);
    expect(await isServed(idle)).toBe(true);
    expect(await isServed(await open())).toBe(false);
    expect(await isServed(idle)).toBe(false);
    expect(await isServed(await open())).toBe(true);
  });

  it("accepts a new connection after another was closed", async () => {
    const { open, hold } = await givenServer({ total: 1 });
    const first = await open();
    await hold(first);
    first.destroy();
    await eventually(async () => isServed(await open()), { because: "the connection is gone" });
  });
});

describe("given the maximum number of connections of one address", () => {
  it("closes a new connection of that address, and accepts other addresses", async () => {
    const { open, hold, rejections } = await givenServer({ perAddress: 2 });
    for (const client of [await open(), await open()]) await hold(client);
    const others = [await open("127.0.0.2"), await open("127.0.0.3")];
    expect(await isServed(await open())).toBe(false);
    // They are idle now, and stay open when another address exceeds its limit.
    for (const client of others) expect(await isServed(client)).toBe(true);
    expect(await isServed(await open())).toBe(false);
    for (const client of others) expect(await isServed(client)).toBe(true);
    expect(await rejections("address")).toBe(2);
  });

  it("does not limit the connections of a trusted proxy", async () => {
    const { open, hold, held } = await givenServer({
      ...{ perAddress: 1, trustedProxies: ["127.0.0.2"] },
    });
    for (let time = 0; time < 3; time++) await hold(await open("127.0.0.2"));
    expect(held.every((response) => !response.destroyed)).toBe(true);
    expect(await isServed(await open("127.0.0.2"))).toBe(true);
  });
});
