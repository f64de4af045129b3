import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { eventually } from "@halyard/testing";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { bodyOf, givenGateway, givenUpstream } from "./given-gateway.ts";

/** Tests of requests that a client writes to one connection without waiting for responses. */
let behave: (request: IncomingMessage, response: ServerResponse) => void;
let inFlight: number;
let maxInFlight: number;
let received: string[];

const service = await givenUpstream((incoming, response) => {
  received.push(incoming.url ?? "");
  inFlight += 1;
  maxInFlight = Math.max(maxInFlight, inFlight);
  response.once("close", () => {
    inFlight -= 1;
  });
  behave(incoming, response);
});
const gateway = await givenGateway({ management: [service.origin], edges: [service.origin] });
afterAll(async () => {
  await gateway.stop();
  await service.close();
});

const clients: Socket[] = [];
beforeEach(() => {
  received = [];
  inFlight = 0;
  maxInFlight = 0;
  behave = (incoming, response) => response.end(`<${incoming.url}>`);
});
afterEach(() => {
  for (const client of clients.splice(0)) client.destroy();
});

function openClient(): Socket {
  const client = connect(gateway.port, "127.0.0.1");
  client.on("error", () => undefined);
  clients.push(client);
  return client;
}

/** Collects everything that a client reads. */
function readAll(client: Socket): { text: () => string } {
  let text = "";
  client.on("data", (chunk) => {
    text += chunk.toString("latin1");
  });
  return { text: () => text };
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
const paths = (count: number) =>
  Array.from({ length: count }, (_, index) => `/api/v1/flags/${index}`);
const answersIn = (text: string) => text.match(/<[^>]*>/g) ?? [];

describe("given thousands of pipelined requests on one connection", () => {
  it("has one request in flight at a time, and returns the responses in order", async () => {
    const expected = paths(1_500);
    const client = openClient();
    const read = readAll(client);
    client.write(expected.map(get).join(""));
    await eventually(() => answersIn(read.text()).length === expected.length, {
      because: "every request is answered",
    });
    expect(answersIn(read.text())).toEqual(expected.map((path) => `<${path}>`));
    expect(received).toEqual(expected);
    expect(maxInFlight).toBe(1);
  });

  it("separates requests with bodies correctly", async () => {
    behave = (incoming, response) =>
      void bodyOf(incoming).then(({ length }) => response.end(`<${incoming.url} ${length}>`));
    const sizes = Array.from({ length: 30 }, (_, index) => (index % 3) * 60_000);
    const client = openClient();
    const read = readAll(client);
    for (const size of sizes) {
      const head = `POST /api/v1/flags HTTP/1.1\r\nHost: x\r\nContent-Length: ${size}\r\n\r\n`;
      client.write(head + "x".repeat(size));
    }
    await eventually(() => answersIn(read.text()).length === sizes.length, {
      because: "every request is answered",
    });
    expect(answersIn(read.text())).toEqual(sizes.map((size) => `</api/v1/flags ${size}>`));
    expect(maxInFlight).toBe(1);
  });

  it("returns its own responses in order with those of services", async () => {
    const client = openClient();
    const read = readAll(client);
    client.write(get("/api/v1/flags/1") + get("/nothing") + get("/api/v1/flags/2"));
    await eventually(() => read.text().includes("</api/v1/flags/2>"), {
      because: "the last request is answered",
    });
    expect(read.text().match(/HTTP\/1\.1 \d+/g)).toEqual([
      "HTTP/1.1 200",
      "HTTP/1.1 404",
      "HTTP/1.1 200",
    ]);
  });
});

describe("given a request in flight", () => {
  let hold: ServerResponse[];
  beforeEach(() => {
    hold = [];
    behave = (_incoming, response) => {
      hold.push(response);
    };
  });

  it("stops reading from a client that sends more requests", async () => {
    const accepted = once(gateway.app.server, "connection") as Promise<[Socket]>;
    const client = openClient();
    const [connection] = await accepted;
    const flood = Buffer.from(get("/api/v1/flags").repeat(1_000));
    const floodBytes = flood.length * 200;
    let written = 0;
    const write = () => {
      while (written < floodBytes) {
        written += flood.length;
        if (!client.write(flood)) return void client.once("drain", write);
      }
    };
    write();
    await eventually(() => hold.length === 1 && connection.isPaused(), {
      because: "the first request is in flight",
    });
    for (let time = 0; time < 20; time++) await (await fetch(`${gateway.url}/healthz`)).text();
    expect(connection.bytesRead).toBeLessThan(floodBytes / 10);
    expect(hold).toHaveLength(1);
  });

  it("does not forward waiting requests after the client has disconnected", async () => {
    const client = openClient();
    client.write(paths(3).map(get).join(""));
    await eventually(() => hold.length === 1, { because: "a request is in flight" });
    client.resetAndDestroy();
    hold[0]?.end("done");
    await eventually(() => inFlight === 0, { because: "the request in flight has ended" });
    behave = (_incoming, response) => response.end();
    await (await fetch(`${gateway.url}/api/v1/flags`)).text();
    expect(received).toEqual(["/api/v1/flags/0", "/api/v1/flags"]);
  });

  it("closes a connection when too many requests wait on all connections", async () => {
    // Smaller than one read, so that the read ends at the end of a request.
    const flood = get("/api/v1/flags").repeat(1_600);
    const flooding = Array.from({ length: 10 }, openClient);
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    for (const client of flooding) {
      client.once("close", resolve).resume();
      client.write(flood);
    }
    await closed;
    behave = (_incoming, response) => response.end("fine");
    expect(await (await fetch(`${gateway.url}/api/v1/flags`)).text()).toBe("fine");
  });
});
