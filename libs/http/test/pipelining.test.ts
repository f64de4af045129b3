import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { eventually } from "@halyard/testing";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import type { FastifyReply } from "fastify";
import { givenApp } from "./given-app.ts";

/** Tests of requests that a client writes to one connection without waiting for responses. */
let held: FastifyReply[];
let received: string[];

const given = await givenApp((app) => {
  app.get("/flags/*", (request, reply) => {
    received.push(request.url);
    reply.send(`<${request.url}>`);
  });
  app.get("/hold", (_request, reply) => {
    received.push("/hold");
    held.push(reply);
  });
});
afterAll(async () => {
  given.app.server.closeAllConnections();
  await given.close();
});

const clients: Socket[] = [];
beforeEach(() => {
  held = [];
  received = [];
});
afterEach(() => {
  for (const client of clients.splice(0)) client.destroy();
});

function openClient(): Socket {
  const client = connect(given.port, "127.0.0.1");
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
const paths = (count: number) => Array.from({ length: count }, (_, index) => `/flags/${index}`);
const answersIn = (text: string) => text.match(/<[^>]*>/g) ?? [];

/** Writes requests as fast as the connection accepts them. */
function flood(client: Socket, path: string, count: number): void {
  const requests = Buffer.from(get(path).repeat(1_000));
  let left = count / 1_000;
  const write = () => {
    while (left > 0) {
      left -= 1;
      if (!client.write(requests)) return void client.once("drain", write);
    }
  };
  write();
}

describe("given thousands of pipelined requests on one connection", () => {
  it("responds to all of them, in order", async () => {
    const expected = paths(5_000);
    const client = openClient();
    const read = readAll(client);
    client.write(expected.map(get).join(""));
    await eventually(() => answersIn(read.text()).length === expected.length, {
      because: "every request is answered",
    });
    expect(answersIn(read.text())).toEqual(expected.map((path) => `<${path}>`));
    expect(received).toEqual(expected);
  });

  it("does not read further requests while one is in flight, and continues afterwards", async () => {
    const client = openClient();
    const read = readAll(client);
    client.write(get("/hold"));
    await eventually(() => held.length === 1, { because: "the first request is in flight" });
    flood(client, "/flags/1", 100_000);
    await eventually(() => received.length > 1, { because: "one read has arrived" });
    // The application has handled everything that had arrived before.
    for (let time = 0; time < 20; time++) await (await fetch(`${given.url}/flags/2`)).text();
    const ofClient = received.filter((path) => path === "/flags/1").length;
    expect(ofClient).toBeLessThan(5_000);
    held[0]?.send("<held>");
    await eventually(() => answersIn(read.text()).length === 100_001, {
      because: "every request is answered",
    });
  });

  it("frees the places of a client that disconnects", async () => {
    // Together more than may wait at the same time.
    for (let time = 1; time <= 12; time++) {
      const client = openClient();
      client.write(get("/hold") + get("/flags/1").repeat(1_000));
      await eventually(() => held.length === time && received.length > time, {
        because: "requests wait",
      });
      client.resetAndDestroy();
      held[time - 1]?.send("too late");
    }
    const next = openClient();
    const read = readAll(next);
    next.write(paths(1_000).map(get).join(""));
    await eventually(() => answersIn(read.text()).length === 1_000, {
      because: "another client is answered",
    });
  });

  it("closes a connection when too many requests wait on all connections", async () => {
    const requests = get("/hold") + get("/flags/1").repeat(1_500);
    const flooding = Array.from({ length: 10 }, openClient);
    const closed = Promise.race(flooding.map((client) => once(client, "close")));
    for (const client of flooding) client.resume().write(requests);
    await closed;
    expect(await (await fetch(`${given.url}/flags/3`)).text()).toBe("</flags/3>");
  });
});
