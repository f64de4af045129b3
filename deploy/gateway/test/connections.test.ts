import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { createMetrics } from "@halyard/service";
import { eventually } from "@halyard/testing";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { type GivenGateway, givenGateway, givenUpstream, type Upstream } from "./given-gateway.ts";

/** Tests of connection limits. Each address of 127.0.0.0/8 represents a client. */
let service: Upstream;
let gateway: GivenGateway;
let held: ServerResponse[];
const metrics = () => createMetrics({ service: "gateway" });
let registry: ReturnType<typeof metrics>;

beforeEach(async () => {
  held = [];
  registry = metrics();
  service = await givenUpstream((incoming, response) => {
    if (incoming.url?.endsWith("?hold") === true) held.push(response);
    else response.end("fine");
  });
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  await gateway.stop();
  await service.close();
});

async function gatewayWith(
  limits: Parameters<typeof givenGateway>[0]["limits"] & object,
  trustedProxies: string[] = [],
): Promise<void> {
  gateway = await givenGateway({
    management: [service.origin],
    edges: [],
    limits,
    trustedProxies,
    metrics: registry,
  });
}

const clients: Socket[] = [];

/** Opens a connection and waits until the gateway has accepted it. */
async function open(address = "127.0.0.1"): Promise<Socket> {
  const accepted = once(gateway.app.server, "connection");
  const client = connect({ port: gateway.port, host: "127.0.0.1", localAddress: address });
  client.on("error", () => undefined);
  client.resume();
  clients.push(client);
  await accepted;
  return client;
}

async function holdRequest(client: Socket): Promise<void> {
  const count = held.length;
  client.write("GET /api/v1/flags?hold HTTP/1.1\r\nHost: x\r\n\r\n");
  await eventually(() => held.length > count, { because: "the request has arrived" });
}

async function isOpen(client: Socket): Promise<boolean> {
  if (client.destroyed) return false;
  client.write("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  return Promise.race([
    once(client, "data").then(() => true),
    once(client, "close").then(() => false),
  ]);
}

async function rejections(reason: string): Promise<number> {
  const text = await registry.metrics();
  const pattern = new RegExp(
    `^halyard_gateway_rejected_total\\{.*reason="${reason}".*\\} (\\d+)`,
    "m",
  );
  return Number(pattern.exec(text)?.[1] ?? 0);
}

describe("given the maximum number of connections", () => {
  it("closes the longest idle connection when a new one arrives", async () => {
    await gatewayWith({ connections: 3 });
    const [working, first, second] = [await open(), await open(), await open()];
    await holdRequest(working);
    expect(await isOpen(first)).toBe(true);
    const fourth = await open();
    expect(await isOpen(second)).toBe(false);
    for (const client of [first, fourth]) expect(await isOpen(client)).toBe(true);
    held[0]?.end("done");
  });

  it("closes the new connection when all others have requests in flight", async () => {
    await gatewayWith({ connections: 2 });
    for (const client of [await open(), await open()]) await holdRequest(client);
    expect(await isOpen(await open())).toBe(false);
    expect(await rejections("connections")).toBe(1);
    expect(held.every((response) => !response.destroyed)).toBe(true);
  });

  it("accepts a new connection after another was closed", async () => {
    await gatewayWith({ connections: 1 });
    const first = await open();
    await holdRequest(first);
    first.destroy();
    await eventually(async () => isOpen(await open()), { because: "the connection is gone" });
  });
});

describe("given the maximum number of connections of one address", () => {
  it("closes a new connection of that address, and accepts other addresses", async () => {
    await gatewayWith({ connectionsPerAddress: 2 });
    for (const client of [await open(), await open()]) await holdRequest(client);
    const others = [await open("127.0.0.2"), await open("127.0.0.3")];
    expect(await isOpen(await open())).toBe(false);
    for (const client of others) expect(await isOpen(client)).toBe(true);
    expect(await rejections("connections_per_address")).toBe(1);
  });

  it("closes an idle connection of that address first, and no connection of another address", async () => {
    await gatewayWith({ connectionsPerAddress: 2 });
    const other = await open("127.0.0.2");
    const [idle, working] = [await open(), await open()];
    await holdRequest(working);
    expect(await isOpen(await open())).toBe(true);
    expect(await isOpen(idle)).toBe(false);
    expect(await isOpen(other)).toBe(true);
  });

  it("does not limit the connections of a trusted proxy", async () => {
    await gatewayWith({ connectionsPerAddress: 1 }, ["127.0.0.2"]);
    const proxies = [await open("127.0.0.2"), await open("127.0.0.2"), await open("127.0.0.2")];
    for (const client of proxies) await holdRequest(client);
    for (const response of held) expect(response.destroyed).toBe(false);
    expect(await isOpen(await open("127.0.0.2"))).toBe(true);
  });
});
